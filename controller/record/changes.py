"""What a decision adds to the record: the facts that are not as they were at the one before."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from controller.record.facts import Body, FactKey, FactKind
from controller.record.plans import SHARED_MEMORY, order_body, paths_body
from controller.record.snapshots import CONTROLLER, Setting, SnapshotFacts, telemetry_bodies
from policies.job import Job
from policies.memory_codec import EncodedMemory
from policies.plan import FlowPlan, JobPlan, Plan
from policies.policy import Policy
from policies.snapshot import Snapshot

_OF_A_JOB = (FactKind.JOB, FactKind.ORDER, FactKind.PATHS, FactKind.MEMORY)


@dataclass(frozen=True, slots=True)
class _KnownJob:
    """What was last told of a job."""

    job: Job
    plan: JobPlan
    flows: list[FlowPlan]
    memory: Any


@dataclass(frozen=True, slots=True)
class Known:
    """What the record knows: by job, and of facts that are about no job."""

    jobs: dict[str, _KnownJob] = field(default_factory=dict)
    bodies: dict[FactKey, Body] = field(default_factory=dict)


def known_of(snapshot: Snapshot, plan: Plan, setting: Setting, policy: Policy | None) -> Known:
    """What the record knows once it has been told of a decision; without the policy nothing of its memory."""
    plans = {job.name: job for job in plan.jobs}
    memory = EncodedMemory() if policy is None else policy.encode_memory(plan)
    jobs = {
        job.name: _KnownJob(
            job, plans[job.name], [plan.flows[flow.key] for flow in job.flows], memory.by_job.get(job.name)
        )
        for job in snapshot.jobs
    }
    return Known(
        jobs,
        {CONTROLLER: setting.model_dump(mode="json"), **dict(telemetry_bodies(snapshot)), SHARED_MEMORY: memory.shared},
    )


def changes(known: Known, now: Known, facts: SnapshotFacts) -> Iterator[tuple[FactKey, Body]]:
    """The facts of a decision that are not as they were known; None for one that is no longer."""
    for name, told in now.jobs.items():
        yield from _job_changes(known.jobs.get(name), told, facts)
    for name in sorted(known.jobs.keys() - now.jobs.keys()):
        yield from ((FactKey(kind, name), None) for kind in _OF_A_JOB)
    for key, body in now.bodies.items():
        if known.bodies.get(key) != body:
            yield key, body


def _job_changes(known: _KnownJob | None, told: _KnownJob, facts: SnapshotFacts) -> Iterator[tuple[FactKey, Body]]:
    name = told.job.name
    if known is None or (known.job is not told.job and known.job != told.job):
        yield FactKey(FactKind.JOB, name), facts.job_body(told.job)
    are_same_flows = known is not None and known.flows == told.flows
    if known is None or known.plan != told.plan or not are_same_flows:
        yield FactKey(FactKind.ORDER, name), order_body(told.plan, told.flows)
    if known is None or (not are_same_flows and paths_body(known.flows) != paths_body(told.flows)):
        yield FactKey(FactKind.PATHS, name), paths_body(told.flows)
    if (known.memory if known is not None else None) != told.memory:
        yield FactKey(FactKind.MEMORY, name), told.memory
