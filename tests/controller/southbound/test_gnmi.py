"""Port states are heard from switches over gNMI: at first, whenever one changes, and again after a restart."""

import asyncio
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import asynccontextmanager
from typing import Any

import grpc.aio
import pytest
from finsy import GNMIPath, GNMIUpdate
from finsy.proto import gnmi

from controller.links.port_states import PortStateTable
from controller.southbound.gnmi import GnmiPortMonitor, InterfaceTable
from controller.switch_addresses import SwitchAddress
from tests.integration.fabrics import ServedFabric, served_dumbbell
from tests.patience import PATIENCE_S


@asynccontextmanager
async def listening(served: ServedFabric) -> AsyncIterator[PortStateTable]:
    heard = PortStateTable(served.emulated.switches)
    async with GnmiPortMonitor(served.addresses(), heard):
        yield heard


def run(scenario: Callable[[ServedFabric, PortStateTable], Coroutine[Any, Any, None]]) -> None:
    async def in_time() -> None:
        async with asyncio.timeout(PATIENCE_S), served_dumbbell() as served, listening(served) as heard:
            await scenario(served, heard)

    asyncio.run(in_time())


def test_all_ports_are_heard_and_every_change_of_one() -> None:
    async def scenario(served: ServedFabric, heard: PortStateTable) -> None:
        await heard.caught_up(down=())
        fabric = served.emulated.fabric
        for name, ports in heard.states.items():
            assert ports == {link.source_port: True for link in fabric.links_from[name]}
        [between] = fabric.links_between("t0", "t1")
        link = fabric.links[between]
        for up in (False, True, False):
            served.emulated.set_link(between, up=up)
            await heard.caught_up(down=() if up else ((link.source, link.source_port),))

    run(scenario)


def test_a_switch_without_power_is_heard_no_longer_and_again_when_it_is_back() -> None:
    async def scenario(served: ServedFabric, heard: PortStateTable) -> None:
        await heard.caught_up(down=())
        [back] = served.emulated.fabric.links_between("t1", "t0")
        link = served.emulated.fabric.links[back]
        served.emulated.set_switch("t0", up=False)
        await heard.caught_up(down=((link.source, link.source_port),), silent=("t0",))
        assert heard.states.keys() == {"t1"}
        served.emulated.set_switch("t0", up=True)
        await heard.caught_up(down=())

    run(scenario)


def test_a_switch_without_gnmi_is_named_once_and_says_nothing(caplog: pytest.LogCaptureFixture) -> None:
    async def scenario() -> None:
        server = grpc.aio.server()
        port = server.add_insecure_port("127.0.0.1:0")
        await server.start()
        heard = PortStateTable(("t0",))
        async with GnmiPortMonitor((SwitchAddress(name="t0", address=f"127.0.0.1:{port}"),), heard):
            await heard.all_heard()
        assert heard.states == {"t0": {}}
        await server.stop(None)

    asyncio.run(asyncio.wait_for(scenario(), PATIENCE_S))
    assert [record.levelname for record in caplog.records if record.name == "controller.southbound.gnmi"] == ["WARNING"]


def test_another_address_for_gnmi_is_used() -> None:
    async def scenario() -> None:
        async with served_dumbbell() as served:
            heard = PortStateTable(served.emulated.switches)
            addresses = [
                SwitchAddress(name=switch.name, address="127.0.0.1:1", device_id=switch.device_id, gnmi=switch.gnmi)
                for switch in (address.model_copy(update={"gnmi": address.address}) for address in served.addresses())
            ]
            async with GnmiPortMonitor(addresses, heard):
                await heard.caught_up(down=())

    asyncio.run(asyncio.wait_for(scenario(), PATIENCE_S))


def leaf(name: str, value: gnmi.TypedValue | None, interface: str = "eth1") -> GNMIUpdate:
    return GNMIUpdate(0, GNMIPath(f"interfaces/interface[name={interface}]/state/{name}"), value)


@pytest.mark.parametrize(
    ("number", "up", "down"),
    [
        (gnmi.TypedValue(uint_val=3), gnmi.TypedValue(string_val="UP"), gnmi.TypedValue(string_val="LOWER_LAYER_DOWN")),
        (gnmi.TypedValue(json_val=b"3"), gnmi.TypedValue(json_val=b'"UP"'), gnmi.TypedValue(json_val=b'"DOWN"')),
        (
            gnmi.TypedValue(json_ietf_val=b'"3"'),
            gnmi.TypedValue(json_ietf_val=b'"UP"'),
            gnmi.TypedValue(json_ietf_val=b'"TESTING"'),
        ),
    ],
)
def test_values_in_every_encoding(number: gnmi.TypedValue, up: gnmi.TypedValue, down: gnmi.TypedValue) -> None:
    interfaces = InterfaceTable()
    interfaces.record(leaf("oper-status", up))
    assert interfaces.ports() == {}
    interfaces.record(leaf("ifindex", number))
    assert interfaces.ports() == {3: True}
    interfaces.record(leaf("oper-status", down))
    assert interfaces.ports() == {3: False}
    interfaces.record(leaf("oper-status", None))
    assert interfaces.ports() == {}


@pytest.mark.parametrize(
    "update",
    [
        leaf("ifindex", gnmi.TypedValue(string_val="three")),
        leaf("ifindex", gnmi.TypedValue(json_val=b"{")),
        leaf("oper-status", gnmi.TypedValue(json_val=b"[1]")),
        leaf("oper-status", gnmi.TypedValue()),
        leaf("mtu", gnmi.TypedValue(uint_val=9000)),
        GNMIUpdate(0, GNMIPath("system/state/hostname"), gnmi.TypedValue(string_val="t0")),
    ],
)
def test_what_cannot_be_read_changes_nothing_of_other_ports(update: GNMIUpdate) -> None:
    interfaces = InterfaceTable()
    interfaces.record(leaf("ifindex", gnmi.TypedValue(uint_val=4), "eth2"))
    interfaces.record(leaf("oper-status", gnmi.TypedValue(string_val="UP"), "eth2"))
    interfaces.record(update)
    assert interfaces.ports() == {4: True}
