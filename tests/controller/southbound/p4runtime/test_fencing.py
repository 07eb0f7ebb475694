"""Switches of the emulator's under two controllers, one of which has led before."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager

from controller.config import ControllerConfig
from controller.rules.flow_rules import FlowRule
from controller.southbound.fencing import first_election_id
from controller.southbound.p4runtime.reconnecting import ConnectionLostError
from controller.southbound.p4runtime.switches import P4RuntimeSouthbound
from controller.southbound.southbound import SwitchCondition
from tests.accepted_writes import AcceptedWrite, accepted_writes, interleaved
from tests.integration.fabrics import ServedFabric, served_dumbbell
from tests.patience import PATIENCE_S, until
from topologies.addressing import UDP_PROTOCOL, FiveTuple
from topologies.ecmp import hash_multipliers
from topologies.routing import Routing


class _Grant:
    """A right to write that is there until it is taken, whatever others do."""

    def __init__(self, term: int) -> None:
        self.term = term
        self.doubts = 0
        self.allowed = asyncio.Event()
        self.allowed.set()

    async def granted(self) -> None:
        await self.allowed.wait()

    def doubt(self) -> None:
        self.doubts += 1


@asynccontextmanager
async def _southbound(served: ServedFabric, grant: _Grant) -> AsyncIterator[P4RuntimeSouthbound]:
    fabric = served.emulated.fabric
    fields = ControllerConfig.model_fields
    routing = Routing(fabric, hash_multipliers(fabric.switches, seed=1))
    pipeline, election_id = fields["pipeline"].default, fields["election_id"].default
    async with P4RuntimeSouthbound(served.addresses(), routing, pipeline, election_id, grant=grant) as southbound:
        yield southbound


def _rules(level: int) -> dict[str, tuple[FlowRule, ...]]:
    five_tuple = FiveTuple(0x0A000001, 0x0A000201, UDP_PROTOCOL, 49152, 4791)
    return {name: (FlowRule(name, five_tuple, None, level),) for name in ("t0", "t1")}


def _run(scenario: Callable[[ServedFabric, list[AcceptedWrite]], Awaitable[None]]) -> None:
    async def served() -> None:
        with accepted_writes() as accepted:
            async with served_dumbbell() as fabric:
                await scenario(fabric, accepted)

    asyncio.run(asyncio.wait_for(served(), PATIENCE_S))


def test_bids_of_a_later_term_are_above_all_of_the_one_before() -> None:
    assert first_election_id(100, 3) + 60_000 < first_election_id(100, 4)


def test_what_is_written_late_is_accepted_by_no_switch() -> None:
    async def scenario(served: ServedFabric, accepted: list[AcceptedWrite]) -> None:
        former, latter = _Grant(1), _Grant(2)
        async with _southbound(served, former) as old:
            await old.caught_up()
            async with _southbound(served, latter) as new:
                await new.caught_up()
                await new.write(_rules(6))
                before = len(accepted)
                await old.write(_rules(3))
                await until(lambda: former.doubts == 2)
                assert len(accepted) == before
                assert [status.condition for status in old.statuses()] == [SwitchCondition.LOST] * 2
                assert [status.num_rules for status in new.statuses()] == [1, 1]
                assert latter.doubts == 0
        assert interleaved(accepted) == []
        assert {write.term for write in accepted} == {1, 2}

    _run(scenario)


def test_a_switch_whose_stream_breaks_does_not_go_back_to_who_led_before() -> None:
    async def scenario(served: ServedFabric, accepted: list[AcceptedWrite]) -> None:
        former, latter = _Grant(1), _Grant(2)
        async with _southbound(served, former) as old, _southbound(served, latter) as new:
            await new.caught_up()
            await until(lambda: former.doubts == 2)
            before = len(accepted)
            # As a stream does that breaks alone: the switch has no primary for a moment.
            new._switches["t0"].create_task(_break())
            await until(lambda: new.statuses()[0].condition is SwitchCondition.AWAY)
            await new.caught_up()
            await old.write(_rules(3))
            await new.write(_rules(6))
            assert {write.term for write in accepted[before:]} == {2}
            assert [status.num_rules for status in new.statuses()] == [1, 1]
            assert [status.condition for status in old.statuses()] == [SwitchCondition.LOST] * 2

    _run(scenario)


def test_nothing_is_written_anywhere_before_all_switches_that_answer_are_claimed() -> None:
    async def scenario(served: ServedFabric, accepted: list[AcceptedWrite]) -> None:
        served.emulated.set_switch("t0", up=False)
        async with _southbound(served, _Grant(1)) as southbound:
            await asyncio.sleep(1.0)
            assert accepted == []
            served.emulated.set_switch("t0", up=True)
            await southbound.caught_up()
        assert {write.switch for write in accepted} == {"t0", "t1"}

    _run(scenario)


def test_a_switch_that_stays_away_is_not_waited_for_without_end() -> None:
    async def scenario(served: ServedFabric, accepted: list[AcceptedWrite]) -> None:
        served.emulated.set_switch("t0", up=False)
        async with _southbound(served, _Grant(1)) as southbound:
            await southbound.caught_up(down=["t0"])
        assert {write.switch for write in accepted} == {"t1"}

    _run(scenario)


def test_an_earlier_stream_of_the_same_term_is_outbid() -> None:
    async def scenario(served: ServedFabric, _: list[AcceptedWrite]) -> None:
        async with _southbound(served, _Grant(1)) as earlier:
            await earlier.caught_up()
            async with _southbound(served, _Grant(1)) as later:
                await later.caught_up()
                await later.write(_rules(6))
                assert [status.num_rules for status in later.statuses()] == [1, 1]

    _run(scenario)


def test_nothing_is_written_while_the_grant_is_in_doubt() -> None:
    async def scenario(served: ServedFabric, accepted: list[AcceptedWrite]) -> None:
        grant = _Grant(1)
        async with _southbound(served, grant) as southbound:
            await southbound.caught_up()
            before = len(accepted)
            grant.allowed.clear()
            writing = asyncio.create_task(southbound.write(_rules(6)))
            await asyncio.sleep(0.2)
            assert len(accepted) == before
            grant.allowed.set()
            await writing
            assert len(accepted) == before + 2

    _run(scenario)


async def _break() -> None:
    raise ConnectionLostError
