"""Switches of a run that end are started again; links go down and up; counters are those of ports and levels."""

import asyncio
import os
import signal
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from experiments.scenarios.real_hosts.openvswitch_switches import OpenVSwitchSwitches
from experiments.scenarios.real_hosts.switches import SwitchesError
from tests.openvswitch import skip_without_openvswitch
from tests.patience import until
from tests.topologies.namespaces.conftest import skip_unless_permitted
from topologies.ecmp import FabricHash
from topologies.namespaces.fabric_namespaces import FabricNamespaces
from topologies.openvswitch.port_queues import MTU_BYTES
from topologies.specification import DumbbellSpecification

FABRIC = DumbbellSpecification(
    kind="dumbbell", hosts_per_side=1, gpus_per_host=1, nics_per_host=1, host_link_gbps=0.1, bottleneck_gbps=0.1
).build()


@asynccontextmanager
async def _started(losses: list[str]) -> AsyncIterator[OpenVSwitchSwitches]:
    with FabricNamespaces(FABRIC, MTU_BYTES, has_switch_cables=True) as namespaces:
        async with OpenVSwitchSwitches(FABRIC, namespaces, on_loss=losses.append) as switches:
            yield switches


@pytest.fixture(autouse=True)
def _is_possible() -> None:
    skip_without_openvswitch()
    skip_unless_permitted(())


def test_a_controller_finds_all_switches_at_one_socket() -> None:
    async def run() -> None:
        async with _started([]) as switches:
            places = switches.places()
            found = {each.name: each.openflow.datapath_id for each in places.switches if each.openflow is not None}
            assert found == FABRIC.device_ids
            assert places.openflow.listen.startswith("unix:/")
            assert places.hash is FabricHash.UNKNOWN

    asyncio.run(run())


def test_a_switch_that_is_killed_is_started_again_with_its_ports() -> None:
    async def run() -> None:
        losses: list[str] = []
        async with _started(losses) as switches:
            daemons = switches.daemons("t0")
            before = daemons.process_ids
            os.kill(before[-1], signal.SIGKILL)
            await until(lambda: daemons.process_ids[-1] != before[-1] and daemons.runs)
            # It returns when the bridges are there.
            await asyncio.to_thread(daemons.vsctl, "set", "bridge", "t0", "external-ids:seen=yes")
            assert " 1(h0-eth0)" in await asyncio.to_thread(daemons.ofctl, "show", "t0")
        assert not losses

    asyncio.run(run())


def test_links_go_down_and_up_and_counters_are_read() -> None:
    async def run() -> None:
        async with _started([]) as switches:
            (between,) = FABRIC.links_between("t0", "t1")
            counted = await switches.read()
            assert set(counted) == {
                (name, link.source_port) for name in ("t0", "t1") for link in FABRIC.links_from[name]
            }
            assert all(len(levels) == 8 for levels in counted.values())
            daemons = switches.daemons("t0")
            switches.want_links_down(frozenset({between}))
            await until(lambda: "LINK_DOWN" in daemons.ofctl("show", "t0"))
            switches.want_links_down(frozenset())
            await until(lambda: "LINK_DOWN" not in daemons.ofctl("show", "t0"))

    asyncio.run(run())


def test_open_vswitch_that_is_not_installed_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("topologies.openvswitch.daemons._SCHEMAS", (Path("/nonexistent/vswitch.ovsschema"),))

    async def run() -> None:
        async with _started([]):
            pass

    with pytest.raises(SwitchesError, match=r"^vswitch\.ovsschema not found: apt-get install openvswitch-switch$"):
        asyncio.run(run())
