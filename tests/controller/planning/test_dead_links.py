"""Dead links: their rules go first, then base routing changes, then a Plan; a link that returns waits for its Plan."""

import asyncio
import logging
from collections.abc import Iterable

import pytest

from controller.links.damping import Damping
from controller.links.link_health import DeadCable, LinkHealth, LinkState, PortStates
from controller.links.link_log import cable_name, link_changes
from controller.planning.context import PlannerContext
from controller.planning.directives import DirectivePublisher
from controller.planning.planner import Planner
from controller.planning.snapshots import Snapshots
from controller.registry.registry import Registry
from controller.registry.requests import FlowGroupRequest, JobRequest
from controller.rules.flow_rules import FlowRule, RulesBySwitch
from controller.southbound.recording import RecordingSouthbound
from experiments.scenarios.driven.clock import DrivenClock
from policies.flows import Flow
from policies.plan import Plan
from policies.policy import Policy, decide
from policies.registry import find_policy
from policies.snapshot import Snapshot
from topologies.ecmp import FabricHash
from topologies.fabric import Path
from topologies.routing import Routing


class Controlled:
    """A planner with the one job, whose links are told to be down."""

    def __init__(
        self,
        registry: Registry,
        routing: Routing,
        job: JobRequest,
        ring: FlowGroupRequest,
        damping: Damping | None = None,
    ) -> None:
        self.routing, self.clock, self.southbound = routing, DrivenClock(), RecordingSouthbound()
        self.links = LinkHealth(routing.fabric, damping)
        self.planner = Planner(
            PlannerContext(
                registry=registry,
                snapshots=Snapshots(registry, routing, num_levels=8, seed=1),
                routing=routing,
                policy=find_policy("crux"),
                southbound=self.southbound,
                directives=DirectivePublisher(registry),
                clock=self.clock,
                fabric_hash=FabricHash.UNKNOWN,  # so that every flow that crosses has rules
                links=self.links,
            )
        )
        registry.register_job(job, now_s=0.0)
        registry.register_flow_groups("gpt", [FlowGroupRequest("pair", ring.flows[:1] * 2)])
        self.planner.mark_changed()
        asyncio.run(self.planner.settle())

    def states(self, down: Iterable[int]) -> PortStates:
        fabric, dead = self.routing.fabric, set(down)
        return {
            switch: {link.source_port: link.index not in dead for link in fabric.links_from[switch]}
            for switch in fabric.switches
        }

    def tell(self, *down: int) -> None:
        self.links.set_port_states(self.states(down), self.clock.now_s())

    def flows(self) -> tuple[Flow, ...]:
        assert self.planner.decision is not None
        return self.planner.decision.snapshot.jobs[0].flows

    def path(self, flow: Flow) -> Path:
        assert self.planner.decision is not None
        return self.planner.decision.plan.flows[flow.key].path or flow.hashed_path


@pytest.fixture
def controlled(registry: Registry, routing: Routing, job: JobRequest, ring: FlowGroupRequest) -> Controlled:
    return Controlled(registry, routing, job, ring)


def led(rules: RulesBySwitch) -> set[FlowRule]:
    return {rule for some in rules.values() for rule in some if rule.next_link is not None}


def test_rules_of_flows_over_a_dead_link_go_before_anything_is_planned(
    controlled: Controlled, monkeypatch: pytest.MonkeyPatch
) -> None:
    first, second = controlled.flows()
    dying = controlled.path(first)[2]  # behind the first switch
    assert dying not in controlled.path(second)
    held = led(controlled.southbound.written[-1])

    def plan(policy: Policy, snapshot: Snapshot, **_: bool) -> Plan:
        assert len(controlled.southbound.written) == 2
        assert led(controlled.southbound.written[-1]) == {rule for rule in held if rule.five_tuple != first.five_tuple}
        dead = {dying, controlled.routing.fabric.reverse(dying)}
        assert [routing.dead for routing in controlled.southbound.routings] == [dead]
        return decide(policy, snapshot)

    monkeypatch.setattr("controller.planning.planner.decide", plan)
    controlled.tell(dying)
    asyncio.run(controlled.planner.settle())
    # The plan has led it another way.
    assert len(controlled.southbound.written) == 3
    moved = {rule.five_tuple for rule in led(controlled.southbound.written[-1])}
    assert moved == {first.five_tuple, second.five_tuple}
    assert dying not in controlled.path(controlled.flows()[0])


def test_a_flow_without_a_path_is_cut_off_and_has_no_rules_until_there_is_one(controlled: Controlled) -> None:
    before = controlled.southbound.written[-1]
    [port] = {
        link
        for link in controlled.path(controlled.flows()[0])
        if controlled.routing.fabric.links[link].destination == "h2"
    }
    controlled.tell(port)
    asyncio.run(controlled.planner.settle())
    assert [flow.is_cut_off for flow in controlled.flows()] == [True, True]
    assert controlled.southbound.written[-1] == {}
    assert controlled.planner.decision is not None
    assert {(plan.path, plan.level) for plan in controlled.planner.decision.plan.flows.values()} == {(None, 0)}
    controlled.tell()
    asyncio.run(controlled.planner.settle())
    assert controlled.southbound.written[-1] == before
    assert [routing.dead for routing in controlled.southbound.routings][-1] == frozenset()


def test_cables_that_go_down_and_come_back_are_logged(controlled: Controlled, caplog: pytest.LogCaptureFixture) -> None:
    fabric = controlled.routing.fabric
    first, *_, last = (link.index for link in fabric.links_from["t0"] if link.destination == "a0")
    controlled.tell(first, last)
    asyncio.run(controlled.planner.settle())
    controlled.tell(fabric.reverse(first))
    asyncio.run(controlled.planner.settle())
    asyncio.run(controlled.planner.settle())
    assert caplog.messages == ["not used any longer: t0.0>a0 (down), t0.1>a0 (down)", "used again: t0.1>a0"]


def test_a_few_of_many_cables_are_named(routing: Routing) -> None:
    fabric = routing.fabric
    [named] = link_changes(fabric, frozenset(), {0, 1}, dead_cables=())
    assert named.message == f"not used any longer: {fabric.links[0].source}.0>{fabric.links[0].destination}"
    health = LinkHealth(fabric, None)
    health.set_port_states({switch: dict.fromkeys(range(1, 100), False) for switch in fabric.switches}, 0.0)
    [line] = link_changes(fabric, frozenset(), health.dead_links(0.0), health.dead_cables(0.0))
    assert line.message.endswith(f" and {len(fabric.cables) - 8} more")


def test_cables_that_operators_drain_are_information_and_those_that_fail_a_warning(routing: Routing) -> None:
    fabric, drained, failed = routing.fabric, {0, 1}, {2, 3}
    name = {link: cable_name(fabric, link) for link in (0, 2)}
    down = [DeadCable(2, LinkState.DOWN, 0.0, 1, None)]
    left = link_changes(fabric, frozenset(), drained | failed, down, drained)
    assert [(change.level, change.message) for change in left] == [
        (logging.WARNING, f"not used any longer: {name[2]} (down)"),
        (logging.INFO, f"not used any longer: {name[0]} (drained)"),
    ]
    back = link_changes(fabric, drained | failed, frozenset(), (), frozenset(), drained)
    assert [(change.level, change.message) for change in back] == [
        (logging.WARNING, f"used again: {name[2]}"),
        (logging.INFO, f"used again: {name[0]}"),
    ]
    # What fails while it is drained is a failure.
    down = [DeadCable(0, LinkState.DOWN, 0.0, 1, None)]
    assert [change.level for change in link_changes(fabric, frozenset(), drained, down, drained)] == [logging.WARNING]


def test_a_link_that_comes_back_is_used_only_with_its_plan(controlled: Controlled) -> None:
    dying = controlled.path(controlled.flows()[0])[2]
    controlled.tell(dying)
    asyncio.run(controlled.planner.settle())
    controlled.tell()
    asyncio.run(controlled.planner.leave_dead_links())
    assert len(controlled.southbound.routings) == 1
    asyncio.run(controlled.planner.settle())
    assert len(controlled.southbound.routings) == 2


def test_a_link_that_dies_during_a_plan_is_not_used_by_it(
    controlled: Controlled, monkeypatch: pytest.MonkeyPatch
) -> None:
    dying = controlled.path(controlled.flows()[0])[2]

    def plan(policy: Policy, snapshot: Snapshot, **_: bool) -> Plan:
        found = decide(policy, snapshot)
        controlled.tell(dying)
        return found

    monkeypatch.setattr("controller.planning.planner.decide", plan)
    controlled.planner.mark_changed()
    asyncio.run(controlled.planner.settle())
    over = {rule.five_tuple for rule in led(controlled.southbound.written[-1])}
    assert over == {flow.five_tuple for flow in controlled.flows()[1:]}
    assert dying in controlled.southbound.routings[-1].dead


def test_a_flapping_cable_is_used_again_when_its_hold_ends(
    registry: Registry, routing: Routing, job: JobRequest, ring: FlowGroupRequest
) -> None:
    controlled = Controlled(registry, routing, job, ring, Damping(half_life_s=2.0, longest_hold_s=9.0))
    dying = controlled.path(controlled.flows()[0])[2]
    for _ in range(2):
        controlled.tell(dying)
        asyncio.run(controlled.planner.settle())
        controlled.tell()
        asyncio.run(controlled.planner.settle())
    assert dying in controlled.southbound.routings[-1].dead
    release_s = controlled.planner.next_timer_s
    assert release_s is not None
    assert 0 < release_s < 9.0
    controlled.clock.advance_to(release_s)
    asyncio.run(controlled.planner.settle())
    assert controlled.southbound.routings[-1].dead == frozenset()
