"""A whole finsy controller: it takes the emulator for a switch."""

from collections.abc import AsyncIterator
from pathlib import Path
from typing import TypeVar, cast

import finsy as fy
import pytest
from finsy.grpcutil import GRPCStatusCode

from emulator.entries import ActionCall, EntryKey, FieldMatch
from emulator.p4runtime.pipeline import Pipeline
from tests.emulator.p4runtime.clients import Served, run, serving

COUNTED = fy.P4CounterData(byte_count=300, packet_count=3)


def controller(served: Served, p4info: Path, blob: Path, election_id: int = 10) -> fy.Switch:
    options = fy.SwitchOptions(p4info=p4info, p4blob=blob, device_id=2, initial_election_id=election_id)
    return fy.Switch("under test", served.address, options)


Entity = TypeVar(
    "Entity",
    fy.P4TableEntry,
    fy.P4DirectCounterEntry,
    fy.P4ActionProfileMember,
    fy.P4ActionProfileGroup,
    fy.P4CounterEntry,
)


async def read(switch: fy.Switch, entity: Entity) -> list[Entity]:
    # The method is an asynchronous generator, but its overloads are declared as coroutines.
    found = cast(AsyncIterator[Entity], switch.read(entity))
    return [item async for item in found]


def flow(level: int | None = None, source: int = 0x0A000001) -> fy.P4TableEntry:
    action = None if level is None else fy.P4TableAction("set_level", level=level)
    match = fy.P4TableMatch(source=source, port=80)
    return fy.P4TableEntry("flow", match=match, action=action)


def test_tables(pipeline: Pipeline, p4info_path: Path, device_config_path: Path) -> None:
    async def test() -> None:
        async with serving(pipeline) as served, controller(served, p4info_path, device_config_path) as switch:
            assert switch.is_primary
            assert served.switches[2].commits == 1
            await switch.insert([flow(level=5)])
            key = EntryKey((FieldMatch(0x0A000001, 0xFFFFFFFF), FieldMatch(80, 0xFFF)))
            assert served.switches[2].entry("Ingress.flow", key) == ActionCall("Ingress.set_level", (5,))
            await switch.modify([flow(level=6)])
            (entry,) = await read(switch, fy.P4TableEntry("flow"))
            assert entry == flow(level=6)
            await switch.modify([fy.P4DirectCounterEntry("flow_counter", table_entry=flow(), data=COUNTED)])
            (count,) = await read(switch, fy.P4DirectCounterEntry("flow_counter"))
            assert count.data == COUNTED
            await switch.delete([flow()])
            assert await read(switch, fy.P4TableEntry("flow")) == []

    run(test())


def test_groups_and_routes(pipeline: Pipeline, p4info_path: Path, device_config_path: Path) -> None:
    members = [
        fy.P4ActionProfileMember("ecmp", member_id=port, action=fy.P4TableAction("forward", port=port, mac=port))
        for port in (1, 2)
    ]
    group = fy.P4ActionProfileGroup(
        "ecmp",
        group_id=1,
        max_size=4,
        members=[fy.P4Member(1, weight=1), fy.P4Member(2, weight=2)],
    )
    route = fy.P4TableEntry(
        "routing",
        match=fy.P4TableMatch(destination=(0x0A000000, 8)),
        action=fy.P4IndirectAction(group_id=1),
    )

    async def test() -> None:
        async with serving(pipeline) as served, controller(served, p4info_path, device_config_path) as switch:
            await switch.insert(members)
            await switch.insert([group])
            await switch.insert([route])
            assert await read(switch, fy.P4ActionProfileMember()) == members
            assert await read(switch, fy.P4ActionProfileGroup()) == [group]
            assert await read(switch, fy.P4TableEntry("routing")) == [route]
            await switch.delete_all()
            assert list(served.switches[2].entries("Ingress.routing")) == []
            await switch.delete([group, *members])
            assert served.switches[2].members("Ingress.ecmp") == {}

    run(test())


def test_counters(pipeline: Pipeline, p4info_path: Path, device_config_path: Path) -> None:
    async def test() -> None:
        async with serving(pipeline) as served, controller(served, p4info_path, device_config_path) as switch:
            await switch.modify([fy.P4CounterEntry("levels", index=3, data=COUNTED)])
            cells = await read(switch, fy.P4CounterEntry("levels"))
            assert [cell.packet_count for cell in cells] == [0, 0, 0, 3, 0, 0, 0, 0]

    run(test())


def test_errors_say_which_update_failed(pipeline: Pipeline, p4info_path: Path, device_config_path: Path) -> None:
    async def test() -> None:
        async with serving(pipeline) as served, controller(served, p4info_path, device_config_path) as switch:
            with pytest.raises(fy.P4ClientError) as error:
                await switch.write([+flow(1), +flow(2), +flow(3, source=0x0A000002), -flow(source=0x0A000003)])
            assert error.value.code is GRPCStatusCode.UNKNOWN
            assert {at: detail.canonical_code for at, detail in error.value.details.items()} == {
                1: GRPCStatusCode.ALREADY_EXISTS,
                3: GRPCStatusCode.NOT_FOUND,
            }
            assert len(list(served.switches[2].entries("Ingress.flow"))) == 2

    run(test())


def test_a_second_controller_is_a_backup_that_reads(
    pipeline: Pipeline, p4info_path: Path, device_config_path: Path
) -> None:
    async def test() -> None:
        async with serving(pipeline) as served, controller(served, p4info_path, device_config_path) as first:
            await first.insert([flow(level=5)])
            async with controller(served, p4info_path, device_config_path, election_id=9) as second:
                assert not second.is_primary
                assert await read(second, fy.P4TableEntry("flow")) == [flow(level=5)]
                with pytest.raises(fy.P4ClientError) as error:
                    await second.insert([flow(level=1)])
                assert error.value.code is GRPCStatusCode.PERMISSION_DENIED
            assert served.switches[2].commits == 1

    run(test())
