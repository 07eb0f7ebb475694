"""Plans as facts, job by job, and back."""

from collections.abc import Mapping, Sequence
from itertools import groupby
from typing import Any

from controller.record.facts import Body, FactKey, FactKind, Facts
from policies.flows import FlowKey
from policies.job import Job
from policies.memory_codec import EncodedMemory
from policies.plan import FlowPlan, JobPlan, Plan
from policies.snapshot import Snapshot

SHARED_MEMORY = FactKey(FactKind.SHARED_MEMORY, "")


def order_body(plan: JobPlan, flows: Sequence[FlowPlan]) -> Body:
    """What is decided for a job but for the paths of its flows, those alike and next to each other together."""
    alike = groupby((flow.level, flow.order) for flow in flows)
    return {
        "rank": plan.rank,
        "level": plan.level,
        "intensity": plan.intensity,
        "correction_factor": plan.correction_factor,
        "priority": plan.priority,
        "time_shift_s": plan.time_shift_s,
        "reason": plan.reason,
        "flows": [[sum(1 for _ in run), *level_and_order] for level_and_order, run in alike],
    }


def paths_body(flows: Sequence[FlowPlan]) -> Body:
    """The paths of a job's flows."""
    return [flow.path for flow in flows]


def plan_of(policy: str, snapshot: Snapshot, facts: Facts) -> Plan:
    """The Plan for a Snapshot, without its memory, from the facts that were true then."""
    jobs: list[JobPlan] = []
    flows: dict[FlowKey, FlowPlan] = {}
    for job in snapshot.jobs:
        order = facts[FactKey(FactKind.ORDER, job.name)]
        jobs.append(_job_plan(job.name, order))
        flows |= _flow_plans(job, order["flows"], facts[FactKey(FactKind.PATHS, job.name)])
    return Plan(policy, tuple(sorted(jobs, key=lambda job: job.rank)), flows)


def memory_of(facts: Facts) -> EncodedMemory:
    """What the Plan of these facts remembers."""
    by_job = {key.key: body for key, body in facts.items() if key.kind is FactKind.MEMORY}
    return EncodedMemory(facts.get(SHARED_MEMORY), by_job)


def _job_plan(name: str, body: Mapping[str, Any]) -> JobPlan:
    return JobPlan(
        name=name,
        rank=body["rank"],
        level=body["level"],
        intensity=body["intensity"],
        correction_factor=body["correction_factor"],
        priority=body["priority"],
        time_shift_s=body["time_shift_s"],
        reason=body["reason"],
    )


def _flow_plans(
    job: Job, runs: Sequence[Sequence[int]], paths: Sequence[Sequence[int] | None]
) -> dict[FlowKey, FlowPlan]:
    levels_and_orders = [(level, order) for count, level, order in runs for _ in range(count)]
    return {
        flow.key: FlowPlan(None if path is None else tuple(path), level, order)
        for flow, path, (level, order) in zip(job.flows, paths, levels_and_orders, strict=True)
    }
