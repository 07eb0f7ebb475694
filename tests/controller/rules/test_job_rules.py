"""Rules for whole jobs: their levels, what they match, and what they must not take from registered flows."""

from dataclasses import replace
from pathlib import Path

import pytest
from finsy import P4Schema, P4TableEntry

from controller.config import ControllerConfig
from controller.planning.snapshots import Snapshots
from controller.profiling.measured import ProfilingResults
from controller.registry.registry import Registry
from controller.registry.requests import FlowGroupRequest, JobRequest
from controller.rules.flow_rules import FlowRule, flow_rules
from controller.rules.job_rules import JobRule, job_rules
from controller.southbound.p4runtime.entries import JOB_PRIORITY, is_own, job_entry, key_of
from controller.southbound.states import EntryKind
from policies.plan import FlowPlan, Plan
from policies.policy import decide
from policies.registry import find_policy
from policies.snapshot import Snapshot
from topologies.routing import Routing


@pytest.fixture
def snapshots(registry: Registry, routing: Routing) -> tuple[Snapshots, ProfilingResults]:
    results = ProfilingResults()
    return Snapshots(registry, routing, num_levels=8, seed=1, profiling=results), results


def _job_rules(snapshot: Snapshot, routing: Routing) -> dict[str, tuple[JobRule, ...]]:
    return job_rules(decide(find_policy("crux"), snapshot), snapshot, routing.fabric)


def test_a_job_that_is_measured_has_the_level_above_all_others(
    registry: Registry, routing: Routing, job: JobRequest, snapshots: tuple[Snapshots, ProfilingResults]
) -> None:
    registry.register_job(replace(job, profile=None), now_s=0.0)
    taken, results = snapshots
    nics = routing.fabric.nics
    before = _job_rules(taken.take(0.0, None), routing)
    assert before == {
        "t0": (JobRule("t0", nics["h0"][0].address, "h2", nics["h2"][0].subnet, level=0),),
        "t1": (JobRule("t1", nics["h2"][0].address, "h0", nics["h0"][0].subnet, level=0),),
    }
    results.profiled = job.name
    snapshot = taken.take(1.0, None)
    assert snapshot.num_levels == 7
    rules = [rule for some in _job_rules(snapshot, routing).values() for rule in some]
    assert {(rule.level, rule.is_measured) for rule in rules} == {(7, True)}
    assert not any(rule.is_measured for some in before.values() for rule in some)


def test_jobs_that_tell_their_flows_have_no_rule_for_all_of_them(
    registry: Registry, routing: Routing, job: JobRequest, ring: FlowGroupRequest
) -> None:
    registry.register_job(job, now_s=0.0)
    registry.register_flow_groups(job.name, [ring])
    assert _job_rules(Snapshots(registry, routing, 8, 1).take(0.0, None), routing) == {}


def test_a_told_flow_between_the_same_hosts_keeps_its_own_level(
    registry: Registry, routing: Routing, job: JobRequest, ring: FlowGroupRequest
) -> None:
    registry.register_job(job, now_s=0.0)
    registry.register_flow_groups(job.name, [FlowGroupRequest("one", ring.flows[:1])])
    alone = Snapshots(registry, routing, 8, 1).take(0.0, None)
    (flow,) = alone.jobs[0].flows
    plan = Plan("test", (), {flow.key: FlowPlan(None, 0, 0)})
    assert flow_rules(plan, alone, routing) == {}
    registry.register_job(JobRequest("quiet", job.hosts, 8, None), now_s=1.0)
    beside = Snapshots(registry, routing, 8, 1).take(1.0, None)
    assert flow_rules(plan, beside, routing) == {"t0": (FlowRule("t0", flow.five_tuple, None, 0),)}


def test_an_entry_is_the_same_once_a_switch_has_told_of_it(routing: Routing) -> None:
    schema = P4Schema(Path(ControllerConfig.model_fields["pipeline"].default) / "trainyard.p4info.txtpb")
    source = routing.fabric.nics["h0"][0].address
    entry = job_entry(JobRule("t0", source, "h2", routing.fabric.nics["h2"][0].subnet, level=5))
    told = P4TableEntry.decode(entry.encode(schema), schema)
    assert key_of(told) == key_of(entry)
    assert key_of(entry).kind is EntryKind.JOB
    assert told.action == entry.action
    assert entry.match is not None
    assert entry.match["destination_address"][0] < routing.fabric.nics["h2"][0].address


def test_entries_of_the_operator_are_left_alone() -> None:
    assert is_own(P4TableEntry("job", priority=JOB_PRIORITY))
    assert not is_own(P4TableEntry("job", priority=JOB_PRIORITY + 1))
    assert is_own(P4TableEntry("flow"))
