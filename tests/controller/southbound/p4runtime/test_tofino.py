"""A controller and a Tofino's P4Runtime server in memory, alone and beside an emulated BMv2."""

import asyncio
import lzma
from collections.abc import Sequence
from contextlib import AsyncExitStack
from dataclasses import replace
from pathlib import Path
from typing import Any

import grpc.aio
import pytest
from finsy import P4Schema
from finsy.proto import p4i, p4r

from controller.config import ControllerConfig
from controller.rules.flow_rules import FlowRule
from controller.southbound.p4runtime import visiting
from controller.southbound.p4runtime.entries import base_entries, flow_entry
from controller.southbound.p4runtime.programs import Program
from controller.southbound.p4runtime.reading import MAX_ENTITIES, EntityReader
from controller.southbound.p4runtime.states import state_of
from controller.southbound.p4runtime.switches import P4RuntimeSouthbound
from controller.southbound.p4runtime.visiting import VisitingSouthbound
from controller.southbound.southbound import SouthboundError, SwitchCondition, SwitchStatus
from controller.southbound.states import EntryKey, EntryKind
from controller.switch_addresses import SwitchAddress
from p4src import TNA_DEVICE_CONFIG
from tests.controller.southbound.p4runtime.memory_server import MemoryServer, identity, lines, serving
from tests.controller.southbound.p4runtime.tofino_server import TofinoServer, pipeline_folder, tofino
from tests.integration.fabrics import served_fabric
from tests.patience import PATIENCE_S, until
from tests.ports import free_port
from tests.tna_p4info import ECMP_TABLE, tna_p4info, v1model_p4info
from tests.topologies.mixing import with_tofinos
from topologies.addressing import UDP_PROTOCOL, FiveTuple
from topologies.ecmp import hash_multipliers
from topologies.expanding import expanded
from topologies.routing import Routing
from topologies.specification import ClosSpecification
from topologies.targets import TARGETS, Target

CLOS = ClosSpecification(
    kind="clos", tors=2, aggs=3, hosts_per_tor=1, host_link_gbps=100, uplink_gbps=100, uplinks_per_pair=1
)
FABRIC = with_tofinos(CLOS.build(), {"t0"})
ROUTING = Routing(FABRIC, hash_multipliers(FABRIC.switches, seed=1))
FIVE_TUPLE = FiveTuple(FABRIC.nics["h0"][0].address, FABRIC.nics["h1"][0].address, UDP_PROTOCOL, 49152, 4791)
FLOW_TABLE = 0x0200_0002


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return pipeline_folder(tmp_path, tna_p4info())


def connected(
    addresses: Sequence[SwitchAddress], folder: Path, device_config: Path | None = None, **options: Any
) -> P4RuntimeSouthbound:
    election_id = ControllerConfig.model_fields["election_id"].default
    return P4RuntimeSouthbound(addresses, ROUTING, folder, election_id, device_config=device_config, **options)


def rule(switch: str, level: int = 6, port: int = 49152) -> FlowRule:
    return FlowRule(switch, replace(FIVE_TUPLE, source_port=port), None, level)


def status(southbound: P4RuntimeSouthbound, switch: str) -> SwitchStatus:
    (found,) = (each for each in southbound.statuses() if each.name == switch)
    return found


async def caught_up(southbound: P4RuntimeSouthbound, *switches: str) -> None:
    await until(lambda: all(status(southbound, each).condition is SwitchCondition.CAUGHT_UP for each in switches))


def test_the_chip_of_bf_switchd_may_be_device_0(folder: Path) -> None:
    async def scenario() -> None:
        switch = tofino()
        async with serving(switch, name="t0") as address:
            first_chip = SwitchAddress(name="t0", address=address.address, device_id=0)
            async with connected([first_chip], folder) as southbound:
                await asyncio.wait_for(southbound.caught_up(), PATIENCE_S)
        assert len(switch.entities) == len(base_entries("t0", ROUTING))

    asyncio.run(scenario())


def test_a_tofino_gets_its_entries_and_a_second_controller_finds_them_in_place(folder: Path) -> None:
    async def scenario() -> None:
        switch = tofino()
        async with serving(switch, name="t0") as address:
            async with connected([address], folder) as southbound:
                await asyncio.wait_for(southbound.caught_up(), PATIENCE_S)
                await southbound.write({"t0": (rule("t0"),)})
            expected = state_of([*base_entries("t0", ROUTING), flow_entry(rule("t0"), FABRIC)])
            schema = P4Schema(tna_p4info())
            assert set(switch.entities) == {identity(entity.encode(schema)) for entity in expected.values()}
            num_updates = len(switch.updates)
            async with connected([address], folder) as southbound:
                await asyncio.wait_for(southbound.caught_up(), PATIENCE_S)
            assert (len(switch.updates), switch.num_pushes) == (num_updates, 0)

    asyncio.run(scenario())


@pytest.mark.slow
def test_a_tofino_and_an_emulated_bmv2_of_one_fabric_are_both_written_to(folder: Path) -> None:
    async def scenario() -> None:
        switch = tofino()
        async with served_fabric(CLOS) as served, serving(switch, name="t0") as address:
            others = [each for each in served.addresses() if each.name != "t0"]
            async with connected([address, *others], folder) as southbound:
                await asyncio.wait_for(southbound.caught_up(), PATIENCE_S)
                await southbound.write({name: (rule(name),) for name in ("t0", "t1")})
                emulated = served.emulated.switches["t1"]
                assert len(list(emulated.entries("ingress.flow"))) == 1
                assert sum(each.table_entry.table_id == FLOW_TABLE for each in switch.entities.values()) == 1
                assert sum(each.table_entry.table_id == ECMP_TABLE for each in switch.entities.values()) == 256
                assert switch.stop is not None
                await switch.stop()
                await until(lambda: status(southbound, "t0").condition is SwitchCondition.AWAY)
                await southbound.write({name: (rule(name), rule(name, 5, 49153)) for name in ("t0", "t1")})
                assert len(list(emulated.entries("ingress.flow"))) == 2

    asyncio.run(scenario())


@pytest.mark.parametrize(
    ("held", "problem"),
    [
        (v1model_p4info(), "it runs a program for v1model, that of its target in the topology is for tna"),
        (tna_p4info(flow=4096), "it runs another pipeline than the one that this controller writes to"),
        (None, "it runs no program, and this controller has none to load into it"),
    ],
)
def test_a_tofino_with_another_program_is_named_and_left_alone(
    folder: Path, held: Any, problem: str, caplog: pytest.LogCaptureFixture
) -> None:
    async def scenario() -> None:
        wrong, right = TofinoServer(held), MemoryServer()
        async with (
            serving(wrong, name="t0") as first,
            serving(right, name="t1") as second,
            connected([first, second], folder) as southbound,
        ):
            await caught_up(southbound, "t1")
            await until(lambda: status(southbound, "t0").problem == problem)
            await southbound.write({name: (rule(name),) for name in ("t0", "t1")})
            assert status(southbound, "t0").condition is SwitchCondition.AWAY
            assert len(right.entities) == len(base_entries("t1", ROUTING)) + 1
            assert (wrong.updates, wrong.num_pushes) == ([], 0)
            await until(lambda: any(problem in line and "switch t0" in line for line in lines(caplog)))

    asyncio.run(scenario())


def test_no_program_for_bmv2_is_loaded_into_a_tofino(folder: Path) -> None:
    async def scenario() -> None:
        mistaken = tofino()
        async with serving(mistaken, name="t1") as address, connected([address], folder) as southbound:
            problem = "it runs a program for tna, that of its target in the topology is for v1model"
            await until(lambda: status(southbound, "t1").problem == problem)
            assert (mistaken.updates, mistaken.num_pushes) == ([], 0)

    asyncio.run(scenario())


@pytest.mark.parametrize("held", [None, tna_p4info(flow=4096)])
def test_a_tofino_loads_the_device_config_that_the_operator_has_made(folder: Path, held: Any) -> None:
    async def scenario() -> None:
        (folder / "made").write_bytes(b"made by the SDE")
        switch = TofinoServer(held)
        async with serving(switch, name="t0") as address:
            for _ in range(2):
                async with connected([address], folder, folder / "made") as southbound:
                    await asyncio.wait_for(southbound.caught_up(), PATIENCE_S)
        assert switch.num_pushes == 1
        assert switch.config.p4_device_config == b"made by the SDE"
        assert switch.config.p4info == tna_p4info()
        assert len(switch.entities) == len(base_entries("t0", ROUTING))

    asyncio.run(scenario())


def test_the_device_config_of_the_repository_is_loaded(folder: Path) -> None:
    async def scenario() -> None:
        unpacked = lzma.decompress(TNA_DEVICE_CONFIG.read_bytes())
        (folder / "unpacked").write_bytes(unpacked)
        switch = TofinoServer()
        async with (
            serving(switch, name="t0") as address,
            connected([address], folder, folder / "unpacked") as southbound,
        ):
            await asyncio.wait_for(southbound.caught_up(), PATIENCE_S)
        assert switch.config.p4_device_config == unpacked

    asyncio.run(scenario())


def test_an_answer_may_exceed_what_grpc_takes_by_default(folder: Path) -> None:
    async def scenario() -> None:
        switch = tofino()
        large = flow_entry(rule("t0"), FABRIC).encode(P4Schema(tna_p4info()))
        large.table_entry.metadata = bytes(5 << 20)
        switch.entities[identity(large)] = large
        async with serving(switch, name="t0") as address, connected([address], folder) as southbound:
            await asyncio.wait_for(southbound.caught_up(), PATIENCE_S)
            assert status(southbound, "t0").num_rules == 1

    asyncio.run(scenario())


def test_a_full_table_is_named_and_the_other_switch_has_its_rules(folder: Path) -> None:
    async def scenario() -> None:
        full, right = tofino(flow=1), MemoryServer()
        async with (
            serving(full, name="t0") as first,
            serving(right, name="t1") as second,
            connected([first, second], folder) as southbound,
        ):
            await asyncio.wait_for(southbound.caught_up(), PATIENCE_S)
            rules = {name: (rule(name), rule(name, 5, 49153)) for name in ("t0", "t1")}
            with pytest.raises(SouthboundError, match=r"switch 't0': RESOURCE_EXHAUSTED for update 1: .*flow is full"):
                await southbound.write(rules)
            assert status(southbound, "t0").condition is SwitchCondition.REFUSES
            assert status(southbound, "t1").num_rules == 2
            await southbound.write({})
            await caught_up(southbound, "t0")

    asyncio.run(scenario())


@pytest.mark.parametrize(
    ("sizes", "problem"),
    [
        ({"flow": 1}, "table flow is to have 2 entries, it has room for 1"),
        ({"next_hop": 3}, "table next_hop is to have 4 entries, it has room for 3"),
        ({"ecmp": 255}, "table ecmp is to have 256 entries, it has room for 255"),
    ],
)
def test_what_the_program_has_no_room_for_is_named_and_not_written(
    tmp_path: Path, sizes: dict[str, int], problem: str
) -> None:
    async def scenario() -> None:
        small = tna_p4info(**sizes)
        switch = TofinoServer(small)
        rules = (rule("t0"), rule("t0", 5, 49153))
        async with (
            serving(switch, name="t0") as address,
            connected([address], pipeline_folder(tmp_path, small)) as southbound,
        ):
            if "flow" in sizes:
                await asyncio.wait_for(southbound.caught_up(), PATIENCE_S)
                with pytest.raises(SouthboundError, match=f"switch 't0': {problem}"):
                    await southbound.write({"t0": rules})
            await until(lambda: problem in status(southbound, "t0").problem)
            assert all(each.entity.table_entry.table_id != FLOW_TABLE for each in switch.updates)
            assert "flow" in sizes or switch.updates == []

    asyncio.run(scenario())


def test_more_groups_than_their_numbers_reach_are_told() -> None:
    program = _program(tna_p4info())
    keys = [EntryKey(EntryKind.GROUP, (("group", number), ("slot", 0))) for number in range(257)]
    assert program.overflow(keys[:256]) == ""
    assert program.overflow(keys) == "its routes ask for 257 ECMP groups, it has room for 256"


def test_as_many_entries_are_read_back_as_the_tables_hold() -> None:
    for size, limit in ((1024, MAX_ENTITIES), (1 << 18, sum(_program(tna_p4info(ecmp=1 << 18)).sizes.values()))):
        schema: Any = P4Schema(tna_p4info(ecmp=size))
        answer = EntityReader(schema, None, None).answer()  # type: ignore[arg-type]
        answer.add(p4r.ReadResponse(entities=[p4r.Entity()] * limit))
        with pytest.raises(Exception, match=f"more than {limit:,} entries"):
            answer.add(p4r.ReadResponse(entities=[p4r.Entity()]))


def test_slots_that_somebody_changes_are_repaired(folder: Path) -> None:
    async def scenario() -> None:
        switch = tofino()
        async with serving(switch, name="t0") as address, connected([address], folder, read_back_s=0.1) as southbound:
            await asyncio.wait_for(southbound.caught_up(), PATIENCE_S)
            held = {key: entity.SerializeToString(deterministic=True) for key, entity in switch.entities.items()}
            slots = [key for key, entity in switch.entities.items() if entity.table_entry.table_id == ECMP_TABLE]
            changed = p4r.Entity()
            changed.CopyFrom(switch.entities[slots[3]])
            changed.table_entry.action.action.params[0].value = b"\x63"
            switch.entities[slots[3]] = changed
            del switch.entities[slots[7]]
            await until(lambda: status(southbound, "t0").drifted == 2)
            now = {key: entity.SerializeToString(deterministic=True) for key, entity in switch.entities.items()}
            assert now == held

    asyncio.run(scenario())


def test_a_dead_link_is_left_by_rewriting_slots(folder: Path) -> None:
    async def scenario() -> None:
        switch = tofino()
        dead = frozenset({FABRIC.links_between("t0", "a1")[0]})
        async with serving(switch, name="t0") as address, connected([address], folder) as southbound:
            await asyncio.wait_for(southbound.caught_up(), PATIENCE_S)
            await southbound.reroute({}, ROUTING.without(dead))
            assert len(switch.entities) == len(base_entries("t0", ROUTING.without(dead)))
            await southbound.reroute({}, ROUTING)
            assert len(switch.entities) == len(base_entries("t0", ROUTING))

    asyncio.run(scenario())


def test_bf_switchd_that_dies_is_away_and_refilled_when_it_is_back(folder: Path) -> None:
    async def scenario() -> None:
        before, after = tofino(), tofino()
        async with AsyncExitStack() as stack:
            address = await stack.enter_async_context(serving(before, f"127.0.0.1:{free_port()}", name="t0"))
            southbound = await stack.enter_async_context(connected([address], folder))
            await asyncio.wait_for(southbound.caught_up(), PATIENCE_S)
            assert before.stop is not None
            await before.stop()
            await until(lambda: status(southbound, "t0").condition is SwitchCondition.AWAY)
            await stack.enter_async_context(serving(after, address.address, name="t0"))
            await caught_up(southbound, "t0")
            assert after.entities == before.entities

    asyncio.run(scenario())


def test_bf_switchd_without_p4runtime_is_named_and_the_other_switch_unharmed(folder: Path) -> None:
    async def scenario() -> None:
        server, right = grpc.aio.server(), MemoryServer()
        port = server.add_insecure_port("127.0.0.1:0")
        await server.start()
        mute = SwitchAddress(name="t0", address=f"127.0.0.1:{port}")
        try:
            async with (
                serving(right, name="t1") as second,
                connected([mute, second], folder) as southbound,
            ):
                await caught_up(southbound, "t1")
                await until(lambda: "UNIMPLEMENTED" in status(southbound, "t0").problem)
                assert status(southbound, "t0").condition is SwitchCondition.AWAY
        finally:
            await server.stop(None)

    asyncio.run(scenario())


@pytest.mark.parametrize(
    ("held", "problem"),
    [
        (tna_p4info(), ""),
        (v1model_p4info(), "it runs a program for v1model, that of its target in the topology is for tna"),
        (tna_p4info(flow=4096), "it runs another pipeline than the one that this controller writes to"),
        (None, "it runs no program, and this controller has none to load into it"),
    ],
)
def test_who_only_visits_a_tofino_sees_what_would_be_written(
    folder: Path, held: p4i.P4Info | None, problem: str
) -> None:
    async def scenario() -> None:
        switch = TofinoServer(held)
        async with serving(switch, name="t0") as address, serving(MemoryServer(), name="t1") as other:
            others = [other.model_copy(update={"name": name}) for name in FABRIC.switches if name != "t0"]
            config = ControllerConfig(topology=expanded(FABRIC), switches=(address, *others), pipeline=folder)
            southbound = VisitingSouthbound(config, ROUTING, config.election_id)
            async with southbound.connected(None):
                await southbound.visit_all()
            visit = southbound.visits["t0"]
            assert (visit.problem, visit.loads_program) == (problem, False)
            assert len(visit.updates) == (0 if problem else len(base_entries("t0", ROUTING)))
            assert (switch.updates, switch.num_pushes) == ([], 0)
            assert southbound.visits["t1"].loads_program

    asyncio.run(scenario())


def test_a_chip_that_is_never_done_with_its_program_is_named(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    class Loading(TofinoServer):
        async def SetForwardingPipelineConfig(self, *_: Any) -> p4r.SetForwardingPipelineConfigResponse:  # noqa: N802
            await asyncio.Event().wait()
            raise AssertionError

    async def scenario() -> None:
        (folder / "made").write_bytes(b"made by the SDE")
        monkeypatch.setattr(visiting, "_LOAD_S", 0.5)
        async with serving(Loading(), name="t0") as address:
            others = [address.model_copy(update={"name": name}) for name in FABRIC.switches if name != "t0"]
            config = ControllerConfig(
                topology=expanded(FABRIC), switches=(address, *others), pipeline=folder, device_config=folder / "made"
            )
            southbound = VisitingSouthbound(config, ROUTING, config.election_id)
            async with southbound.connected(None):
                await southbound.bid()
            assert southbound.visits["t0"].problem == "unreachable: no answer within 0.5 s"

    asyncio.run(scenario())


def _program(p4info: p4i.P4Info) -> Program:
    return Program(TARGETS[Target.TOFINO], P4Schema(p4info), None)
