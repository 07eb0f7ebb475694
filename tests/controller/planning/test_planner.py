"""The planning loop: changes are planned together, one plan at a time."""

import asyncio

import pytest

from controller.planning.context import PlannerContext
from controller.planning.directives import DirectivePublisher
from controller.planning.planner import Planner
from controller.planning.snapshots import Snapshots
from controller.registry.registry import Registry
from controller.registry.requests import FlowGroupRequest, JobRequest
from controller.rules.flow_rules import RulesBySwitch
from controller.southbound.recording import RecordingSouthbound
from controller.southbound.southbound import Southbound, SouthboundError
from experiments.scenarios.driven.clock import DrivenClock
from policies.plan import Plan
from policies.policy import Policy, decide
from policies.registry import find_policy
from policies.snapshot import Snapshot
from tests.patience import PATIENCE_S, until
from topologies.ecmp import FabricHash
from topologies.routing import Routing


class SlowSouthbound(RecordingSouthbound):
    """Acknowledges when it is told to."""

    def __init__(self) -> None:
        super().__init__()
        self.acknowledge = asyncio.Event()

    async def write(self, rules: RulesBySwitch) -> None:
        await super().write(rules)
        await self.acknowledge.wait()


class RefusingSouthbound(RecordingSouthbound):
    """Refuses the first write."""

    async def write(self, rules: RulesBySwitch) -> None:
        await super().write(rules)
        if len(self.written) == 1:
            raise SouthboundError("switch 't0': table 'flow' is full")


def _planner(
    registry: Registry,
    routing: Routing,
    southbound: Southbound,
    clock: DrivenClock,
    policy: str = "ecmp",
    fabric_hash: FabricHash = FabricHash.KNOWN,
) -> Planner:
    snapshots, directives = Snapshots(registry, routing, num_levels=8, seed=1), DirectivePublisher(registry)
    return Planner(
        PlannerContext(
            registry=registry,
            snapshots=snapshots,
            routing=routing,
            policy=find_policy(policy),
            southbound=southbound,
            directives=directives,
            clock=clock,
            fabric_hash=fabric_hash,
        )
    )


def test_nothing_is_planned_without_a_change(registry: Registry, routing: Routing) -> None:
    southbound = RecordingSouthbound()
    planner = _planner(registry, routing, southbound, DrivenClock())
    asyncio.run(planner.settle())
    assert southbound.written == []
    assert planner.decision is None


def test_end_of_a_lease_is_a_change(registry: Registry, routing: Routing, job: JobRequest) -> None:
    clock = DrivenClock()
    planner = _planner(registry, routing, RecordingSouthbound(), clock)
    registry.register_job(job, now_s=0.0)
    planner.mark_changed()
    asyncio.run(planner.settle())
    assert planner.decision is not None
    assert [planned.name for planned in planner.decision.plan.jobs] == ["gpt"]
    clock.advance_to(registry.lease_s)
    asyncio.run(planner.settle())
    assert planner.decision.number == 2
    assert planner.decision.plan.jobs == ()


def test_every_flow_with_a_path_has_its_rules_where_the_hash_is_unknown(
    registry: Registry, routing: Routing, job: JobRequest, ring: FlowGroupRequest
) -> None:
    southbound = RecordingSouthbound()
    planner = _planner(registry, routing, southbound, DrivenClock(), "crux", FabricHash.UNKNOWN)
    registry.register_job(job, now_s=0.0)
    registry.register_flow_groups("gpt", [ring])
    planner.mark_changed()
    asyncio.run(planner.settle())
    led = [rule.five_tuple for rules in southbound.written[-1].values() for rule in rules if rule.next_link is not None]
    # Each crosses from one ToR to the other: a choice at the first, and one of two cables at the aggregation switch.
    assert len(led) == 2 * len(set(led)) == 2 * len(ring.flows)


def test_changes_during_a_plan_are_planned_together(
    registry: Registry, routing: Routing, job: JobRequest, ring: FlowGroupRequest
) -> None:
    async def scenario() -> None:
        southbound = SlowSouthbound()
        planner = _planner(registry, routing, southbound, DrivenClock())
        loop = asyncio.create_task(planner.run())
        registry.register_job(job, now_s=0.0)
        planner.mark_changed()
        await until(lambda: bool(southbound.written))
        for name in ("a", "b", "c"):
            registry.register_flow_groups("gpt", [FlowGroupRequest(name, ring.flows)])
            planner.mark_changed()
        southbound.acknowledge.set()
        await planner.settle()
        loop.cancel()
        assert planner.decision is not None
        assert planner.decision.number == len(southbound.written) == 2
        assert len(planner.decision.plan.flows) == 6

    asyncio.run(scenario())


def test_refused_plan_does_not_come_into_force_and_is_tried_again(
    registry: Registry, routing: Routing, job: JobRequest
) -> None:
    async def scenario() -> None:
        southbound = RefusingSouthbound()
        planner = _planner(registry, routing, southbound, DrivenClock())
        registry.register_job(job, now_s=0.0)
        planner.mark_changed()
        with pytest.raises(SouthboundError, match="t0"):
            await planner.settle()
        assert planner.decision is None
        await planner.settle()
        assert planner.decision is not None
        assert len(southbound.written) == 2

    asyncio.run(scenario())


def test_a_policy_that_fails_leaves_the_plan_in_force_and_is_asked_again(
    registry: Registry,
    routing: Routing,
    job: JobRequest,
    ring: FlowGroupRequest,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    fails = False

    def decide_or_fail(policy: Policy, snapshot: Snapshot, **_: bool) -> Plan:
        if fails:
            raise KeyError("size_bytes")
        return decide(policy, snapshot)

    async def scenario() -> None:
        nonlocal fails
        clock, southbound = DrivenClock(), RecordingSouthbound()
        planner = _planner(registry, routing, southbound, clock)
        registry.register_job(job, now_s=0.0)
        planner.mark_changed()
        await planner.settle()
        in_force, fails = planner.decision, True
        registry.register_flow_groups("gpt", [ring])
        planner.mark_changed()
        await planner.settle()
        await planner.settle()
        assert planner.decision is in_force
        assert len(southbound.written) == 1
        assert (planner.policy.num_failures, planner.policy.problem) == (1, "KeyError: 'size_bytes'")
        assert [record.getMessage() for record in caplog.records] == [
            "policy ecmp has made no plan: KeyError: 'size_bytes'; the plan before it stays in force"
        ]
        fails = False
        assert planner.next_timer_s == 10.0, "the policy may have failed for what passes"
        registry.extend_leases(10.0)
        clock.advance_to(10.0)
        await planner.settle()
        assert planner.decision is not None
        assert planner.decision.number == 2
        assert len(planner.decision.plan.flows) == len(ring.flows)
        assert (planner.policy.num_failures, planner.policy.problem) == (1, "")

    monkeypatch.setattr("controller.planning.planner.decide", decide_or_fail)
    asyncio.run(scenario())


def test_found_rules_are_deleted_one_lease_after_the_start(
    registry: Registry, routing: Routing, job: JobRequest
) -> None:
    async def scenario() -> None:
        clock, southbound = DrivenClock(), RecordingSouthbound()
        planner = _planner(registry, routing, southbound, clock)
        assert planner.next_timer_s == registry.lease_s
        clock.advance_to(registry.lease_s / 2)
        registry.register_job(job, now_s=clock.now_s())
        planner.mark_changed()
        await planner.settle()
        assert southbound.keeps_found
        clock.advance_to(registry.lease_s)
        await planner.settle()
        assert not southbound.keeps_found
        assert planner.next_timer_s == registry.lease_s * 1.5

    asyncio.run(scenario())


def test_planning_by_itself_ends_when_it_is_cancelled_while_changes_come(registry: Registry, routing: Routing) -> None:
    async def scenario() -> None:
        planner = _planner(registry, routing, RecordingSouthbound(), DrivenClock())
        for _ in range(20):
            loop = asyncio.create_task(planner.run())
            await asyncio.sleep(0)
            planner.mark_changed()
            loop.cancel()
            with pytest.raises(asyncio.CancelledError):
                await asyncio.wait_for(loop, PATIENCE_S)

    asyncio.run(scenario())
