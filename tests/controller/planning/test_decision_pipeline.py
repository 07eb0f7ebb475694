"""The live controller and the in-process one decide alike, by one pipeline."""

import asyncio
from functools import partial

import pytest

from controller.links.link_health import LinkHealth
from controller.planning.context import PlannerContext
from controller.planning.decision import Decision
from controller.planning.directives import DirectivePublisher
from controller.planning.planner import Planner
from controller.planning.snapshots import Snapshots
from controller.registry.registry import Registry
from controller.southbound.recording import RecordingSouthbound
from experiments.scenarios.connections import open_connections
from experiments.scenarios.driven.clock import DrivenClock
from experiments.scenarios.in_process import InProcessController, flow_group_requests, job_request, task_graph_request
from policies.plan import Plan
from policies.policy import Policy, decide
from policies.registry import find_policy
from policies.snapshot import Snapshot
from policies.validation import InvalidPlanError
from topologies.ecmp import FabricHash, hash_multipliers
from topologies.fabric import Fabric
from topologies.routing import Routing
from topologies.steering import Steering
from workloads.jobs import TrainingJob, training_jobs
from workloads.loading import SHIPPED_SCENARIOS, load_scenario

_SCENARIO = load_scenario(SHIPPED_SCENARIOS / "fewer-uplinks.yaml")
_FABRIC = _SCENARIO.topology.build()
_JOBS = training_jobs(_SCENARIO, _FABRIC)
_CONNECTIONS = open_connections(_JOBS, _FABRIC)


def _routing() -> Routing:
    return Routing(_FABRIC, hash_multipliers(_FABRIC.switches, _SCENARIO.seed))


def _cut(health: LinkHealth, fabric: Fabric, job: TrainingJob) -> None:
    """Take down the port to a host of a job, whose flows have no path then."""
    [link] = [link for link in fabric.links if link.destination == job.hosts[0]][:1]
    health.set_port_states({link.source: {link.source_port: False}}, 1.0)


def _live(policy: Policy, steering: Steering, fabric_hash: FabricHash) -> list[Decision]:
    routing, clock, health = _routing(), DrivenClock(), LinkHealth(_FABRIC, None)
    registry = Registry(_FABRIC, lease_s=1e6)
    planner = Planner(
        PlannerContext(
            registry=registry,
            snapshots=Snapshots(registry, routing, _SCENARIO.num_levels, _SCENARIO.seed),
            routing=routing,
            policy=policy,
            southbound=RecordingSouthbound(),
            directives=DirectivePublisher(registry),
            clock=clock,
            steering=steering,
            fabric_hash=fabric_hash,
            links=health,
        )
    )
    decisions: list[Decision] = []

    def settle() -> None:
        planner.mark_changed()
        asyncio.run(planner.settle())
        assert planner.decision is not None
        decisions.append(planner.decision)

    for job in _JOBS:
        registry.register_job(job_request(job), job.specification.arrival_s)
        assigned = steering is Steering.SOURCE_PORT
        groups = flow_group_requests(job, _CONNECTIONS, assigned=assigned)
        registry.register_flow_groups(job.name, groups, task_graph_request(job))
    settle()
    _cut(health, _FABRIC, _JOBS[0])
    clock.advance_to(1.0)
    settle()
    registry.deregister(_JOBS[1].name)
    settle()
    return decisions


def _in_process(policy: Policy, steering: Steering, fabric_hash: FabricHash) -> list[Decision]:
    health = LinkHealth(_FABRIC, None)
    controller = InProcessController(
        *(_routing(), _CONNECTIONS, partial(decide, policy), steering, _SCENARIO.seed, _SCENARIO.num_levels),
        links=health,
        fabric_hash=fabric_hash,
    )
    for job in _JOBS:
        controller.register(job)
    decisions = [controller.decide(0.0)]
    _cut(health, _FABRIC, _JOBS[0])
    decisions.append(controller.decide(1.0))
    controller.deregister(_JOBS[1].name)
    decisions.append(controller.decide(1.0))
    return decisions


@pytest.mark.parametrize("fabric_hash", FabricHash)
@pytest.mark.parametrize("steering", Steering)
@pytest.mark.parametrize("policy", [find_policy(name) for name in ("crux", "trainyard", "cassini")])
def test_a_controller_of_the_same_process_decides_as_the_live_one(
    policy: Policy, steering: Steering, fabric_hash: FabricHash
) -> None:
    live, in_process = (each(policy, steering, fabric_hash) for each in (_live, _in_process))
    assert any(flow.is_cut_off for job in live[1].snapshot.jobs for flow in job.flows)
    for expected, decision in zip(live, in_process, strict=True):
        assert decision.snapshot.previous == expected.snapshot.previous
        assert decision == expected


def test_previous_is_the_plan_as_the_policy_decided_it() -> None:
    decided: list[Plan] = []

    def policy(snapshot: Snapshot) -> Plan:
        assert snapshot.previous is (decided[-1] if decided else None)
        decided.append(decide(find_policy("crux"), snapshot))
        return decided[-1]

    health = LinkHealth(_FABRIC, None)
    controller = InProcessController(_routing(), _CONNECTIONS, policy, Steering.RULE, seed=1, links=health)
    for job in _JOBS:
        controller.register(job)
    _cut(health, _FABRIC, _JOBS[0])
    first = controller.decide(1.0)
    assert first.plan != decided[0], "flows that are cut off are carried out at best effort"
    controller.decide(2.0)
    assert len(decided) == 2


def test_an_invalid_plan_is_refused_where_there_is_none_to_keep() -> None:
    def policy(_: Snapshot) -> Plan:
        return Plan("mine", (), {})

    controller = InProcessController(_routing(), _CONNECTIONS, policy, Steering.RULE, seed=1)
    controller.register(_JOBS[0])
    with pytest.raises(InvalidPlanError, match=f"job '{_JOBS[0].name}': is missing"):
        controller.decide(0.0)
