"""What is written is carried out at once; where a switch refuses some of it, it carries out the rest, and is named."""

import asyncio
import struct
from collections.abc import Sequence

import pytest

from controller.background import Worker
from controller.southbound.openflow.access import OpenFlowAccess
from controller.southbound.openflow.entries import FlowEntry, FlowKey, Match, Table, ToGroup
from controller.southbound.openflow.messages import LONGEST_MESSAGE_BYTES
from controller.southbound.openflow.states import Update
from controller.southbound.states import UpdateKind
from controller.southbound.switch_access import SwitchRefusalError
from tests.controller.southbound.openflow import fake_switch
from tests.controller.southbound.openflow.fake_switch import FakeSwitch, Received, obedient
from tests.controller.southbound.openflow.listening import connected, in_time
from tests.patience import until
from topologies.addressing import Address, Prefix

_TABLE_FULL = 5, 1
_PRIORITY_AT = 22
"""Where the body of a flow mod has it."""


def _entry(priority: int, num_groups: int = 1) -> FlowEntry:
    match = Match(0x0800, destination=Prefix(Address.parse("10.0.0.0"), 24))
    return FlowEntry(FlowKey(Table.ROUTING, priority, match), tuple(map(ToGroup, range(1, num_groups + 1))))


def _added(entries: Sequence[FlowEntry]) -> list[Update]:
    return [Update(UpdateKind.INSERT, entry) for entry in entries]


class _Table:
    """A switch that takes flow mods by their priority, but for those of ``refused``."""

    def __init__(self, *refused: int) -> None:
        self.switch = FakeSwitch()
        self._refused = refused
        self.switch.answers[fake_switch.FLOW_MOD] = self._take

    def _take(self, each: Received) -> bytes:
        (priority,) = struct.unpack_from("!H", each.body, _PRIORITY_AT)
        if priority in self._refused:
            return self.switch.error(each, *_TABLE_FULL)
        self.switch.flows.append(str(priority))
        return b""

    def access(self, channel: object) -> OpenFlowAccess:
        return OpenFlowAccess(channel, None, Worker("tests"), lambda _: None)  # type: ignore[arg-type]


def test_a_refused_entry_keeps_no_other_out_and_is_named() -> None:
    async def run() -> None:
        table = _Table(7, 9)
        async with connected(table.switch) as channel:
            access = table.access(channel)
            with pytest.raises(SwitchRefusalError) as refused:
                await access.write(_added([_entry(priority) for priority in range(5, 12)]))
            assert table.switch.flows == ["5", "6", "8", "10", "11"]
            words = "routing 10.0.0.0/24: group 1: flow mod failed: table full (OFPFMFC_TABLE_FULL)"
            assert str(refused.value) == f"{words} (and 1 more entries)"
            assert not table.switch.bundles, "the bundle is not left behind"

    in_time(run)


def test_entries_are_carried_out_at_once_where_none_is_refused() -> None:
    async def run() -> None:
        table = _Table()
        async with connected(table.switch) as channel:
            await table.access(channel).write(_added([_entry(1), _entry(2)]))
            assert table.switch.flows == ["1", "2"]
            assert fake_switch.FLOW_MOD not in {each.kind for each in table.switch.received}

    in_time(run)


def test_an_entry_that_has_no_room_in_a_bundle_is_written_all_the_same() -> None:
    async def run() -> None:
        table = _Table(3)
        longest = _entry(2, (LONGEST_MESSAGE_BYTES - 80) // 8)
        async with connected(table.switch) as channel:
            access = table.access(channel)
            await access.write(_added([_entry(1), longest]))
            assert table.switch.flows == ["1", "2"]
            (written,) = (each for each in table.switch.received if len(each.body) > LONGEST_MESSAGE_BYTES - 24)
            assert written.kind == fake_switch.FLOW_MOD
            with pytest.raises(SwitchRefusalError, match="table full"):
                await access.write(_added([_entry(3), longest, _entry(4)]))
            assert table.switch.flows == ["1", "2", "2", "4"]

    in_time(run)


def test_an_entry_that_no_message_can_say_is_refused() -> None:
    async def run() -> None:
        table = _Table()
        async with connected(table.switch) as channel:
            with pytest.raises(SwitchRefusalError, match="OpenFlow cannot say it"):
                await table.access(channel).write(_added([_entry(1, 9_000)]))
            assert not table.switch.flows

    in_time(run)


def test_a_reading_after_a_cancelled_write_asks_for_entries_behind_a_barrier() -> None:
    async def run() -> None:
        switch = obedient()
        async with connected(switch) as channel:
            access = OpenFlowAccess(channel, None, Worker("tests"), lambda _: None)
            answer = switch.answers.pop(fake_switch.BARRIER_REQUEST)
            writing = asyncio.create_task(access.write(_added([_entry(1)])))
            await until(lambda: switch.received[-1].kind == fake_switch.BARRIER_REQUEST)
            writing.cancel()
            await asyncio.wait([writing])
            switch.answers[fake_switch.BARRIER_REQUEST] = answer
            num_before = len(switch.received)
            await access.read({})
            asked = [each.kind for each in switch.received[num_before:]]
            first = asked.index(fake_switch.MULTIPART_REQUEST)
            assert fake_switch.BARRIER_REQUEST in asked[:first]
            num_before = len(switch.received)
            await access.read({})
            assert {each.kind for each in switch.received[num_before:]} == {fake_switch.MULTIPART_REQUEST}

    in_time(run)
