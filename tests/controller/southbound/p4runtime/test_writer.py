"""One switch is kept at what it should hold: read back, caught up, never stripped before the first plan."""

import asyncio

import pytest
from finsy import P4TableAction, P4TableEntry, P4TableMatch

from controller.southbound.p4runtime.entries import key_of
from controller.southbound.p4runtime.states import MEANING, Update, state_of
from controller.southbound.southbound import SouthboundError, SwitchCondition
from controller.southbound.states import UpdateKind
from controller.southbound.switch_access import SwitchAwayError, SwitchRefusalError
from controller.southbound.switch_writer import SwitchWriter
from controller.southbound.write_outcomes import MAX_UPDATES_PER_WRITE, SwitchWrite, WriteOutcome
from tests.controller.southbound.p4runtime.fake_access import BASE, FLOW, OTHER_FLOW, FakeAccess, entry
from tests.patience import PATIENCE_S

LEVEL = entry("level", 1, "set_level")


def test_what_is_held_already_is_not_written_again() -> None:
    async def scenario() -> None:
        writer, access = SwitchWriter("t0", MEANING, state_of(BASE)), FakeAccess(*BASE, FLOW)
        await writer.set_rules(state_of([FLOW]))
        await writer.connect(access)
        await asyncio.wait_for(writer.caught_up(), PATIENCE_S)
        assert access.requests == []

    asyncio.run(scenario())


def test_rules_that_are_found_stay_until_they_are_forgotten() -> None:
    async def scenario() -> None:
        writer, access = SwitchWriter("t0", MEANING, state_of(BASE)), FakeAccess(FLOW)
        await writer.connect(access)
        assert access.holds(FLOW, *BASE)
        await writer.set_rules(state_of([OTHER_FLOW]))
        await writer.set_rules({})
        assert access.holds(FLOW, *BASE)
        await writer.forget_found()
        assert access.holds(*BASE)

    asyncio.run(scenario())


def test_a_released_switch_holds_base_routing_alone_until_it_serves_levels_again() -> None:
    async def scenario() -> None:
        base = [*BASE, LEVEL]
        writer, access = SwitchWriter("t0", MEANING, state_of(base)), FakeAccess(OTHER_FLOW)
        await writer.set_rules(state_of([FLOW]))
        await writer.connect(access)
        assert access.holds(OTHER_FLOW, LEVEL, *BASE, FLOW)
        await writer.release()
        assert access.holds(*BASE)
        assert [update.kind for request in access.requests[-2:] for update in request] == [UpdateKind.DELETE] * 3
        rerouted = [entry("next_hop", 2, "forward"), LEVEL]
        await writer.reroute({}, state_of(rerouted), frozenset())
        assert access.holds(rerouted[0])
        # So does one that was away, or that somebody else has written to.
        again = FakeAccess(LEVEL, FLOW)
        writer.disconnect()
        await writer.connect(again)
        assert again.holds(rerouted[0])
        await again.write([Update(UpdateKind.INSERT, LEVEL)])
        drift = await writer.read_back()
        assert drift is not None
        assert drift.foreign == 1
        assert again.holds(rerouted[0])
        await writer.serve_levels()
        await writer.set_rules(state_of([FLOW]))
        assert again.holds(*rerouted, FLOW)
        num_requests = len(again.requests)
        await writer.serve_levels()
        assert len(again.requests) == num_requests

    asyncio.run(scenario())


def test_a_switch_that_is_released_before_it_is_reached_gets_base_routing_alone() -> None:
    async def scenario() -> None:
        writer, access = SwitchWriter("t0", MEANING, state_of([*BASE, LEVEL])), FakeAccess(FLOW, LEVEL)
        await writer.release()
        await writer.connect(access)
        assert access.holds(*BASE)

    asyncio.run(scenario())


def test_what_is_held_anew_replaces_what_was_found_at_once_and_is_no_longer_forgotten() -> None:
    async def scenario() -> None:
        steered_otherwise = entry("flow", 1, "prioritise")
        writer, access = SwitchWriter("t0", MEANING, state_of(BASE)), FakeAccess(FLOW)
        await writer.connect(access)
        await writer.set_rules(state_of([steered_otherwise]))
        assert [update.kind for update in access.requests[-1]] == [UpdateKind.MODIFY]
        await writer.forget_found()
        assert access.holds(steered_otherwise, *BASE)

    asyncio.run(scenario())


def test_a_switch_that_reconnects_does_not_get_back_what_was_deleted() -> None:
    async def scenario() -> None:
        writer, access = SwitchWriter("t0", MEANING, state_of(BASE)), FakeAccess()
        await writer.connect(access)
        await writer.set_rules(state_of([FLOW]))
        writer.disconnect()
        await writer.set_rules({})
        await writer.connect(access)
        assert access.holds(*BASE)

    asyncio.run(scenario())


def test_a_lost_switch_is_an_error_and_left_alone_until_it_is_ours_again() -> None:
    async def scenario() -> None:
        writer, access = SwitchWriter("t0", MEANING, state_of(BASE)), FakeAccess()
        await writer.connect(access)
        writer.mark_lost("lost to another controller")
        num_requests = len(access.requests)
        await writer.set_rules(state_of([FLOW]))
        assert len(access.requests) == num_requests
        assert (writer.condition, writer.problem) == (SwitchCondition.LOST, "lost to another controller")
        with pytest.raises(SouthboundError, match="'t0': lost to another controller"):
            await asyncio.wait_for(writer.caught_up(), PATIENCE_S)
        await writer.connect(access)
        await asyncio.wait_for(writer.caught_up(), PATIENCE_S)
        assert access.holds(*BASE, FLOW)

    asyncio.run(scenario())


def test_switch_that_was_away_is_caught_up() -> None:
    async def scenario() -> None:
        writer, first, restarted = SwitchWriter("t0", MEANING, state_of(BASE)), FakeAccess(), FakeAccess()
        await writer.connect(first)
        writer.disconnect()
        await writer.set_rules(state_of([FLOW]))
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(writer.caught_up(), 0.01)
        await writer.connect(restarted)
        await asyncio.wait_for(writer.caught_up(), PATIENCE_S)
        assert restarted.holds(*BASE, FLOW)
        assert first.holds(*BASE)

    asyncio.run(scenario())


def test_connection_lost_during_a_write_is_no_error() -> None:
    async def scenario() -> None:
        writer, access = SwitchWriter("t0", MEANING, state_of(BASE)), FakeAccess()
        await writer.connect(access)
        access.fail = SwitchAwayError("gone")
        await writer.set_rules(state_of([FLOW]))
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(writer.caught_up(), 0.01)

    asyncio.run(scenario())


def test_every_request_is_told_with_what_became_of_it() -> None:
    async def scenario() -> None:
        told: list[SwitchWrite] = []
        writer, access = SwitchWriter("t0", MEANING, state_of(BASE), told.append), FakeAccess()
        await writer.connect(access)
        await writer.set_rules(state_of([FLOW, OTHER_FLOW]))
        await writer.set_rules(state_of([entry("flow", 1, "prioritise")]))
        access.fail = SwitchRefusalError("table 'flow' is full")
        with pytest.raises(SouthboundError):
            await writer.set_rules(state_of([OTHER_FLOW]))
        await writer.connect(access)
        access.fail = SwitchAwayError("the connection is closed")
        await writer.set_rules({})
        assert told == [
            SwitchWrite("t0", 1, 0, 0, WriteOutcome.ACKNOWLEDGED),
            SwitchWrite("t0", 2, 0, 0, WriteOutcome.ACKNOWLEDGED),
            SwitchWrite("t0", 0, 1, 1, WriteOutcome.ACKNOWLEDGED),
            SwitchWrite("t0", 1, 0, 1, WriteOutcome.REFUSED, "table 'flow' is full"),
            SwitchWrite("t0", 1, 0, 1, WriteOutcome.ACKNOWLEDGED),
            SwitchWrite("t0", 0, 0, 1, WriteOutcome.UNANSWERED),
        ]

    asyncio.run(scenario())


def test_refusal_names_the_switch_and_it_is_read_again() -> None:
    async def scenario() -> None:
        writer, access = SwitchWriter("t0", MEANING, state_of(BASE)), FakeAccess()
        await writer.connect(access)
        access.fail = SwitchRefusalError("table 'flow' is full")
        with pytest.raises(SouthboundError, match=r"'t0': table 'flow' is full"):
            await writer.set_rules(state_of([FLOW]))
        # What the refused request did after all, unseen.
        access.held[key_of(FLOW)] = FLOW
        await writer.set_rules(state_of([FLOW, OTHER_FLOW]))
        assert [update.entity for update in access.requests[-1]] == [OTHER_FLOW]

    asyncio.run(scenario())


def test_requests_are_limited_in_size() -> None:
    async def scenario() -> None:
        writer, access = SwitchWriter("t0", MEANING, {}), FakeAccess()
        await writer.connect(access)
        await writer.set_rules(
            state_of([entry("flow", number, "steer") for number in range(MAX_UPDATES_PER_WRITE + 1)])
        )
        assert [len(request) for request in access.requests] == [MAX_UPDATES_PER_WRITE, 1]

    asyncio.run(scenario())


def test_rules_are_counted_as_they_are_held_and_only_while_that_is_known() -> None:
    async def scenario() -> None:
        writer, access = SwitchWriter("t0", MEANING, state_of(BASE)), FakeAccess(*BASE, FLOW)
        assert writer.num_rules is None
        await writer.connect(access)
        await writer.set_rules(state_of([OTHER_FLOW]))
        assert writer.num_rules == 2  # one that was found is kept
        await writer.forget_found()
        assert writer.num_rules == 1
        access.fail = SwitchRefusalError("table full")
        with pytest.raises(SouthboundError):
            await writer.set_rules({})
        assert writer.num_rules is None
        await writer.set_rules({})
        assert writer.num_rules == 0
        writer.disconnect()
        assert writer.num_rules is None

    asyncio.run(scenario())


def test_a_switch_is_away_until_it_connects_and_again_afterwards() -> None:
    async def scenario() -> None:
        writer = SwitchWriter("t0", MEANING, state_of(BASE))
        await asyncio.wait_for(writer.away(), PATIENCE_S)
        await writer.connect(FakeAccess())
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(writer.away(), 0.01)
        writer.disconnect()
        await asyncio.wait_for(writer.away(), PATIENCE_S)

    asyncio.run(scenario())


def test_condition_says_how_things_stand() -> None:
    async def scenario() -> None:
        writer, access = SwitchWriter("t0", MEANING, state_of(BASE)), FakeAccess()
        assert writer.condition is SwitchCondition.AWAY
        access.fail = SwitchRefusalError("table full")
        with pytest.raises(SouthboundError):
            await writer.connect(access)
        assert (writer.condition, writer.problem) == (SwitchCondition.REFUSES, "table full")
        await writer.set_rules(state_of([FLOW]))
        assert (writer.condition, writer.problem) == (SwitchCondition.CAUGHT_UP, "")
        access.fail = SwitchAwayError("closed")
        await writer.set_rules({})
        assert writer.condition is SwitchCondition.AWAY
        writer.mark_lost("somebody has it")
        assert (writer.condition, writer.problem) == (SwitchCondition.LOST, "somebody has it")
        await writer.connect(access)
        assert (writer.condition, writer.problem) == (SwitchCondition.CAUGHT_UP, "")

    asyncio.run(scenario())


def test_base_entries_are_written_anew_behind_the_flows_and_what_was_found_to_lead_into_a_dead_port_goes() -> None:
    async def scenario() -> None:
        into_dead_port, elsewhere = (
            P4TableEntry("flow", match=P4TableMatch(source_port=port), action=P4TableAction("steer", next_hop=port))
            for port in (3, 4)
        )
        other_base = [entry("next_hop", 2, "forward")]
        writer, access = SwitchWriter("t0", MEANING, state_of(BASE)), FakeAccess(into_dead_port, elsewhere)
        await writer.connect(access)
        assert access.holds(into_dead_port, elsewhere, *BASE)
        access.requests.clear()
        await writer.reroute(state_of([FLOW]), state_of(other_base), dead_next_hops={3})
        assert state_of(access.held.values()) == state_of([elsewhere, FLOW, *other_base])
        first, *others = access.requests
        assert {key_of(update.entity) for update in first} == {key_of(FLOW), key_of(into_dead_port)}
        assert [key_of(update.entity) for request in others for update in request] == [
            key_of(entity) for entity in (*other_base, *BASE)
        ]
        # A switch that comes back is given the new ones.
        writer.disconnect()
        restarted = FakeAccess()
        await writer.connect(restarted)
        assert state_of(restarted.held.values()) == state_of([FLOW, *other_base])

    asyncio.run(scenario())


def test_learned_neighbours_stay_through_rerouting_and_reconnection_until_they_are_unknown_again() -> None:
    async def scenario() -> None:
        learned = [entry("next_hop", 1, "forward_to_learned")]
        writer, access = SwitchWriter("t0", MEANING, state_of(BASE)), FakeAccess()
        await writer.connect(access)
        await writer.set_neighbours(state_of(learned), state_of(BASE))
        assert access.holds(*learned)
        await writer.reroute({}, state_of([*BASE, entry("next_hop", 2, "forward")]), frozenset())
        assert access.holds(*learned, entry("next_hop", 2, "forward"))
        writer.disconnect()
        await writer.connect(empty := FakeAccess())
        assert empty.holds(*learned, entry("next_hop", 2, "forward"))
        await writer.set_neighbours({}, state_of(BASE))
        assert empty.holds(*BASE, entry("next_hop", 2, "forward"))

    asyncio.run(scenario())


@pytest.mark.parametrize(
    ("found_mac", "found_port", "stays"),
    [(0xB8_59_9F_00_00_01, 1, True), (0xB8_59_9F_00_00_01, 2, False), (0, 1, False)],
)
def test_neighbours_that_are_found_stay_where_they_can_be_right(found_mac: int, found_port: int, stays: bool) -> None:
    def next_hop(mac: int, port: int = 1) -> P4TableEntry:
        action = P4TableAction("forward", port=port, source_mac=5, destination_mac=mac)
        return P4TableEntry("next_hop", match=P4TableMatch(next_hop=1), action=action)

    async def scenario() -> None:
        unknown, found = next_hop((1 << 48) - 1), next_hop(found_mac, found_port)
        writer = SwitchWriter("t0", MEANING, state_of([unknown]), unknown_neighbours=state_of([unknown]))
        access = FakeAccess(found)
        await writer.connect(access)
        assert access.holds(found if stays else unknown)
        assert list(writer.neighbours.values()) == ([found] if stays else [])
        await writer.reroute({}, state_of([unknown]), frozenset())
        assert access.holds(found if stays else unknown)
        assert len(access.requests) == (0 if stays else 1)
        await writer.set_neighbours({}, state_of([unknown]))
        assert access.holds(unknown)

    asyncio.run(scenario())


def test_neighbours_that_a_switch_has_refused_are_written_when_they_are_set_again() -> None:
    async def scenario() -> None:
        learned = state_of([entry("next_hop", 1, "forward_to_learned")])
        writer, access = SwitchWriter("t0", MEANING, state_of(BASE)), FakeAccess()
        await writer.connect(access)
        access.fail = SwitchRefusalError("no room")
        with pytest.raises(SouthboundError, match="no room"):
            await writer.set_neighbours(learned, state_of(BASE))
        await writer.set_neighbours(learned, state_of(BASE))
        assert access.holds(*learned.values())
        requests = len(access.requests)
        await writer.set_neighbours(learned, state_of(BASE))
        assert len(access.requests) == requests

    asyncio.run(scenario())
