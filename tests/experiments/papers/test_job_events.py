"""Events counted by hand, and against what the decisions say."""

from dataclasses import replace

import pytest

from experiments.papers.job_events import EventChange, job_events
from experiments.papers.random_jobs import FabricName, random_arrivals
from policies.baselines.ecmp import ecmp
from policies.crux.policy import crux
from policies.plan import FlowPlan, ModelledWorth, Plan
from policies.snapshot import Snapshot
from workloads.scenario import Scenario

WORKLOAD = {"type": "phases", "compute_s": 1.0, "comm_start": 0.5, "bytes": 1e9, "pattern": "pairs"}


@pytest.fixture
def scenario() -> Scenario:
    """One flow a job, over one link: ``a`` from 0 to 10 s, ``b`` from 1 to 5 s."""
    return Scenario.model_validate(
        {
            "name": "two",
            "topology": {"kind": "dumbbell", "hosts_per_side": 2, "host_link_gbps": 100, "bottleneck_gbps": 10},
            "jobs": [
                {"name": "a", "hosts": ["h0", "h2"], "gpus_per_host": 8, "duration_s": 10, "workload": WORKLOAD},
                {
                    "name": "b",
                    "hosts": ["h1", "h3"],
                    "gpus_per_host": 4,
                    "duration_s": 4,
                    "arrival_s": 1,
                    "workload": WORKLOAD,
                },
            ],
        }
    )


def levels(snapshot: Snapshot, *, both: int) -> Plan:
    """Alone a job has level 3, together both have another; nobody is led anywhere, and a GPU computes half its time."""
    plan = crux(snapshot)
    level = 3 if len(snapshot.jobs) == 1 else both
    flows = {key: FlowPlan(flow.path, level, flow.order) for key, flow in plan.flows.items()}
    worth = ModelledWorth(0.0, 0.5 * sum(job.gpus for job in snapshot.jobs))
    return replace(plan, flows=flows, worth=worth)


def test_rules_are_the_difference_that_switches_are_sent(scenario: Scenario) -> None:
    """``a`` comes, ``b`` comes and makes it another level, goes and gives it back, and ``a`` goes."""
    changes = list(job_events(scenario, lambda snapshot: levels(snapshot, both=5)))
    assert changes == [
        EventChange(1, 0, 0, 0, 0, 0, 0.5),
        EventChange(1, 1, 0, 1, 0, 1, 0.5),
        EventChange(0, 1, 1, 1, 0, 1, 0.5),
        EventChange(0, 0, 1, 0, 0, 0, None),
    ]
    # Level 0 needs no rule.
    changes = list(job_events(scenario, lambda snapshot: levels(snapshot, both=0)))
    assert [(change.inserted, change.modified, change.deleted, change.of_staying_jobs) for change in changes] == [
        (1, 0, 0, 0),
        (0, 0, 1, 1),
        (1, 0, 0, 1),
        (0, 0, 1, 0),
    ]


def test_policies_without_decisions_change_nothing(scenario: Scenario) -> None:
    assert list(job_events(scenario, ecmp)) == [EventChange(0, 0, 0, 0, 0, 0, None)] * 4


def test_a_rule_for_the_hashs_path_moves_no_flow() -> None:
    """Every other decision leads all flows to where the hash leads them; then some go elsewhere."""
    count = 0

    def pinned(snapshot: Snapshot) -> Plan:
        nonlocal count
        count += 1
        if count % 2:
            return ecmp(snapshot)
        paths = {flow.key: flow.hashed_path for job in snapshot.jobs for flow in job.flows}
        if count > 6:
            paths = {flow.key: flow.candidates[0] for job in snapshot.jobs for flow in job.flows}
        plan = ecmp(snapshot)
        return replace(plan, flows={key: FlowPlan(paths[key], 0, 0) for key in plan.flows})

    changes = list(job_events(random_arrivals(1, FabricName.TESTBED, 6), pinned))
    assert [change.moved_flows for change in changes[:5]] == [0] * 5
    assert any(change.moved_flows for change in changes)


def test_all_inserted_rules_are_deleted() -> None:
    """After the last departure switches hold nothing any more."""
    changes = list(job_events(random_arrivals(2, FabricName.FEWER_UPLINKS, 8), crux))
    assert len(changes) == 16
    assert sum(change.inserted for change in changes) == sum(change.deleted for change in changes) > 0
    assert all(change.of_staying_jobs <= change.rules for change in changes)
