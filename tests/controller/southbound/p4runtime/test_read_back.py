"""Reading a switch back finds what somebody else has changed, and repairs it; what is written meanwhile is no drift."""

import asyncio
from functools import partial

import pytest

from controller.southbound.drift import Drift
from controller.southbound.p4runtime.entries import key_of
from controller.southbound.p4runtime.states import MEANING, state_of
from controller.southbound.southbound import SouthboundError, SwitchCondition
from controller.southbound.switch_access import SwitchRefusalError
from controller.southbound.switch_writer import SwitchWriter
from controller.southbound.write_outcomes import SwitchWrite, WriteOutcome
from tests.controller.southbound.p4runtime.fake_access import BASE, FLOW, OTHER_FLOW, FakeAccess, entry


def test_what_somebody_else_has_changed_is_repaired_counted_and_reported() -> None:
    async def scenario() -> None:
        written: list[SwitchWrite] = []
        writer, access = SwitchWriter("t0", MEANING, state_of(BASE), written.append), FakeAccess()
        await writer.connect(access)
        await writer.set_rules(state_of([FLOW, OTHER_FLOW]))
        written.clear()
        assert await writer.read_back() is None
        held = dict(access.held)
        del access.held[key_of(FLOW)]
        access.held[key_of(OTHER_FLOW)] = entry("flow", 2, "prioritise")
        for number in (3, 4, 5):
            access.held[key_of(entry("flow", number, "steer"))] = entry("flow", number, "steer")
        assert await writer.read_back() == Drift(missing=1, changed=1, foreign=3)
        assert access.held == held
        assert (writer.num_drifted, writer.condition) == (5, SwitchCondition.CAUGHT_UP)
        assert written == [
            SwitchWrite("t0", 1, 1, 3, WriteOutcome.DRIFTED, "1 missing, 1 changed and 3 foreign"),
            SwitchWrite("t0", 1, 1, 3, WriteOutcome.ACKNOWLEDGED),
        ]
        assert await writer.read_back() is None
        assert len(written) == 2

    asyncio.run(scenario())


def test_a_base_entry_that_somebody_deleted_is_repaired() -> None:
    async def scenario() -> None:
        writer, access = SwitchWriter("t0", MEANING, state_of(BASE)), FakeAccess()
        await writer.connect(access)
        access.held.clear()
        assert await writer.read_back() == Drift(missing=1, changed=0, foreign=0)
        assert access.holds(*BASE)

    asyncio.run(scenario())


def test_rules_found_at_the_start_are_no_drift_while_they_are_kept() -> None:
    async def scenario() -> None:
        writer, access = SwitchWriter("t0", MEANING, state_of(BASE)), FakeAccess(FLOW)
        await writer.connect(access)
        assert await writer.read_back() is None
        del access.held[key_of(FLOW)]
        assert await writer.read_back() == Drift(missing=1, changed=0, foreign=0)
        assert key_of(FLOW) in access.held

    asyncio.run(scenario())


def test_writes_during_a_read_back_are_no_drift() -> None:
    async def scenario() -> None:
        writer, access = SwitchWriter("t0", MEANING, state_of(BASE)), FakeAccess()
        await writer.connect(access)
        await writer.set_rules(state_of([FLOW]))

        async def write_meanwhile() -> None:
            access.during_read = partial(asyncio.sleep, 0)
            await writer.set_rules(state_of([OTHER_FLOW]))

        access.during_read = write_meanwhile
        num_reads = access.num_reads
        assert await writer.read_back() is None
        assert (writer.num_drifted, access.num_reads) == (0, num_reads + 1)
        assert access.holds(*BASE, OTHER_FLOW)

    asyncio.run(scenario())


def test_a_difference_is_confirmed_before_it_counts() -> None:
    """A rule that goes and comes back during the reading may have been found missing."""

    async def scenario() -> None:
        writer, access = SwitchWriter("t0", MEANING, state_of(BASE)), FakeAccess()
        await writer.connect(access)
        await writer.set_rules(state_of([FLOW]))

        async def leave() -> None:
            access.during_read = partial(asyncio.sleep, 0)
            await writer.set_rules({})

        async def come_back() -> None:
            access.after_read = partial(asyncio.sleep, 0)
            await writer.set_rules(state_of([FLOW]))

        access.during_read, access.after_read = leave, come_back
        num_reads = access.num_reads
        assert await writer.read_back() is None
        assert access.num_reads == num_reads + 2
        assert (writer.num_drifted, access.holds(*BASE, FLOW)) == (0, True)

    asyncio.run(scenario())


def test_a_connection_that_ends_during_a_read_back_is_no_drift() -> None:
    async def scenario() -> None:
        writer, access = SwitchWriter("t0", MEANING, state_of(BASE)), FakeAccess()
        await writer.connect(access)

        async def restart() -> None:
            access.held.clear()
            writer.disconnect()

        access.during_read = restart
        assert await writer.read_back() is None
        assert (writer.num_drifted, writer.condition) == (0, SwitchCondition.AWAY)
        assert await writer.read_back() is None

    asyncio.run(scenario())


def test_a_repair_that_is_refused_is_tried_again_by_the_next_read_back() -> None:
    async def scenario() -> None:
        writer, access = SwitchWriter("t0", MEANING, state_of(BASE)), FakeAccess()
        await writer.connect(access)
        access.held.clear()
        access.fail = SwitchRefusalError("table full")
        with pytest.raises(SouthboundError, match="table full"):
            await writer.read_back()
        assert (writer.condition, writer.problem) == (SwitchCondition.REFUSES, "table full")
        await writer.read_back()
        assert (writer.condition, access.holds(*BASE)) == (SwitchCondition.CAUGHT_UP, True)

    asyncio.run(scenario())
