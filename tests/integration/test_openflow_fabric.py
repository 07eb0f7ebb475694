"""A controller on switches of which some speak OpenFlow: it plans, steers, reroutes and visits them as any others."""

import asyncio
import sqlite3
import subprocess
import sys
from collections import Counter
from collections.abc import AsyncIterator, Collection
from contextlib import AsyncExitStack, asynccontextmanager, closing
from pathlib import Path
from typing import Any

import pytest

from controller.api.operations import operations_pb2 as wire
from controller.api.operations.client import Operations
from controller.api.operations.methods import LIST_CONTROLLERS, LIST_SWITCHES
from controller.clock import WallClock
from controller.config import ControllerConfig
from controller.process.active_controller import ActiveController, active_controller
from controller.process.one_shot import apply_once, release_once
from controller.southbound.entry_words import entry_words, kind_words
from controller.southbound.southbound import SwitchCondition
from controller.southbound.visit import SwitchHeldError
from controller.switch_addresses import SwitchAddress
from experiments.scenarios.controller_process import ControllerProcess
from tests.compiled import compile_loops
from tests.controller.southbound.openflow.switched import add_bridges, addresses_of, flows_of, groups_of, use_controller
from tests.integration.fabrics import served_fabric
from tests.integration.test_one_shot import CLOS, stored
from tests.integration.test_routing_of_others import planned, register
from tests.openvswitch import running_openvswitch, skip_without_openvswitch
from tests.patience import PATIENCE_S, until
from tests.ports import free_port
from topologies.ecmp import FabricHash, hash_multipliers
from topologies.openvswitch.daemons import OpenVSwitch
from topologies.routing import Routing

FABRIC = CLOS.build()
OF_OPENFLOW = tuple(switch for switch in FABRIC.switches if switch != "t0")


@asynccontextmanager
async def fabric_of(
    switches: Collection[str] = FABRIC.switches, **options: Any
) -> AsyncIterator[tuple[ControllerConfig, OpenVSwitch]]:
    """The configuration of a fabric of which these switches are bridges; the emulator serves the others."""
    skip_without_openvswitch()
    compile_loops("trainyard")
    with running_openvswitch() as openvswitch:
        add_bridges(openvswitch, FABRIC)
        addresses: dict[str, SwitchAddress] = {each.name: each for each in addresses_of(FABRIC.switches)}
        async with AsyncExitStack() as stack:
            if len(switches) < len(FABRIC.switches):
                served = await stack.enter_async_context(served_fabric(CLOS))
                others = {each.name: each for each in served.addresses() if each.name not in switches}
                addresses |= others
            place = f"127.0.0.1:{free_port()}"
            use_controller(openvswitch, switches, place)
            yield (
                ControllerConfig.model_validate(
                    {
                        "listen": "127.0.0.1:0",
                        "topology": CLOS,
                        "switches": tuple(addresses.values()),
                        "openflow": {"listen": place},
                        "policy": "trainyard",
                        "lease_s": 1e6,
                        "policy_time_limit_s": None,  # however busy the machine is
                        **options,
                    }
                ),
                openvswitch,
            )


@asynccontextmanager
async def controlled(config: ControllerConfig) -> AsyncIterator[ActiveController]:
    routing = Routing(FABRIC, hash_multipliers(FABRIC.switches, config.hash_seed))
    async with active_controller(config, routing, WallClock()) as active:
        await asyncio.wait_for(active.southbound.caught_up(), PATIENCE_S)
        yield active


@pytest.mark.parametrize("switches", [FABRIC.switches, OF_OPENFLOW], ids=["all", "mixed"])
def test_flows_are_steered_and_leave_a_dead_port(switches: Collection[str]) -> None:
    async def test() -> None:
        async with fabric_of(switches) as (config, openvswitch), controlled(config) as active:
            assert config.hash is FabricHash.UNKNOWN
            core = active.core
            statuses = {each.name: each for each in active.southbound.statuses()}
            assert statuses.keys() == set(FABRIC.switches)
            assert {each.condition for each in statuses.values()} == {SwitchCondition.CAUGHT_UP}
            await register(core, "gpt", ("h3", "h0"), num_flows=4)
            await core.planner.settle()
            steered = [line for line in flows_of(openvswitch, "t1") if "priority=200" in line]
            assert len(steered) == 4
            uplinks = {link.index for link in FABRIC.links_from["t1"] if link.destination.startswith("a")}
            taken = {next(iter(uplinks.intersection(path))) for path in planned(core, "gpt").values()}
            assert taken == uplinks
            (dying, _) = sorted(uplinks)
            openvswitch.ofctl("mod-port", "t1", str(FABRIC.links[dying].source_port), "down")
            await until(lambda: dying in core.planner.routing.dead)
            await until(lambda: all(dying not in path for path in planned(core, "gpt").values()))
            assert await active.southbound.link_bytes([dying]) == {dying: 0}

    asyncio.run(test())


def test_a_plan_is_rehearsed_applied_and_withdrawn_without_a_controller(tmp_path: Path) -> None:
    async def test() -> None:
        database = await stored(tmp_path / "t.db")
        async with fabric_of(OF_OPENFLOW, database=database) as (config, openvswitch):
            empty = flows_of(openvswitch, "t1")
            rehearsed = await apply_once(config, is_dry_run=True)
            assert not any(visit.problem for visit in rehearsed)
            assert flows_of(openvswitch, "t1") == empty
            applied = await apply_once(config, is_dry_run=False)

            def told(visits: Any) -> dict[str, Counter[str]]:
                return {
                    visit.name: Counter(
                        f"{update.kind.name} {kind_words(update.entity)} {entry_words(update.entity)}"
                        for update in visit.updates
                    )
                    for visit in visits
                }

            assert told(applied) == told(rehearsed)
            assert any("INSERT flow udp 10." in words for words in told(applied)["t1"])
            assert any("priority=200" in line for line in flows_of(openvswitch, "t1"))
            assert not any(visit.updates for visit in await apply_once(config, is_dry_run=True))
            async with controlled(config):
                with pytest.raises(SwitchHeldError, match=r"a controller has .*t1"):
                    await apply_once(config.model_copy(update={"database": None}), is_dry_run=False)
            released = {visit.name: visit for visit in await release_once(config)}
            assert not any(visit.problem for visit in released.values())
            assert released["t1"].updates
            assert not any("priority=200" in line for line in flows_of(openvswitch, "t1"))
            assert any("table=3" in line for line in flows_of(openvswitch, "t1"))

    asyncio.run(test())


def _written(database: str) -> int:
    """How many entries switches have acknowledged."""
    with closing(sqlite3.connect(database)) as connection:
        (total,) = connection.execute(
            "SELECT COALESCE(SUM(inserted + modified + deleted), 0) FROM switch_write WHERE outcome = 'acknowledged'"
        ).fetchone()
    return int(total)


def test_switches_forward_while_a_killed_controller_is_away_and_its_successor_writes_nothing(tmp_path: Path) -> None:
    async def test() -> None:
        database = await stored(tmp_path / "t.db")
        async with fabric_of(database=database) as (config, openvswitch), ControllerProcess(config) as process:

            def held() -> dict[str, list[str]]:
                return {name: flows_of(openvswitch, name) + groups_of(openvswitch, name) for name in FABRIC.switches}

            def has_rules() -> bool:
                return any("priority=200" in line for line in flows_of(openvswitch, "t1"))

            await until(has_rules)
            await _all_caught_up(process.address)
            before = held()
            await until(lambda: _written(database) >= sum(map(len, before.values())))
            written = _written(database)
            await process.kill()
            assert held() == before
            await process.restart()
            await _all_caught_up(process.address)
            assert (held(), _written(database)) == (before, written)
        assert _decided_again(database, tmp_path / "record.jsonl")[-1] == "2 same"

    asyncio.run(test())


def _decided_again(database: str, file: Path) -> list[str]:
    """What is printed when the Plans that a database has are decided again."""

    def said(*words: str) -> list[str]:
        command = [sys.executable, "-P", "-m", "trainyard", *words]
        return subprocess.run(command, check=True, text=True, capture_output=True).stdout.splitlines()

    said("dump", "--database", database, "--out", str(file))
    return said("replay", str(file))


async def _all_caught_up(address: str) -> None:
    """Wait until a controller has made a Plan, and all switches hold what it has written."""
    with Operations(address) as operations:
        async with asyncio.timeout(PATIENCE_S):
            while True:
                [state] = await asyncio.to_thread(operations.list, LIST_CONTROLLERS)
                switches = await asyncio.to_thread(operations.list, LIST_SWITCHES)
                if state.plan_number and {each.condition for each in switches} == {wire.CAUGHT_UP}:
                    return
                await asyncio.sleep(0.2)
