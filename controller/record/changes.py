"""The facts that a decision changes: what it adds to the record."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from controller.record.codec import (
    CONTROLLER,
    SHARED_MEMORY,
    Setting,
    SnapshotCodec,
    encode_order,
    encode_paths,
    encode_telemetry,
)
from controller.record.facts import Body, FactKey, FactKind
from policies.job import Job
from policies.memory_codec import EncodedMemory
from policies.plan import FlowPlan, JobPlan, Plan
from policies.policy import Policy
from policies.snapshot import Snapshot

_OF_A_JOB = (FactKind.JOB, FactKind.ORDER, FactKind.PATHS, FactKind.MEMORY)


@dataclass(frozen=True, slots=True)
class _RecordedJob:
    """The last recorded state of a job."""

    job: Job
    plan: JobPlan
    flows: list[FlowPlan]
    memory: Any


@dataclass(frozen=True, slots=True)
class RecordedState:
    """The state that a record has after a decision: by job, and the facts that are about no job."""

    jobs: dict[str, _RecordedJob] = field(default_factory=dict)
    bodies: dict[FactKey, Body] = field(default_factory=dict)


def recorded_state(snapshot: Snapshot, plan: Plan, setting: Setting, policy: Policy | None) -> RecordedState:
    """The state after a decision; without the policy it lacks the memory of the Plan."""
    plans = {job.name: job for job in plan.jobs}
    memory = EncodedMemory() if policy is None else policy.encode_memory(plan)
    jobs = {
        job.name: _RecordedJob(
            job, plans[job.name], [plan.flows[flow.key] for flow in job.flows], memory.by_job.get(job.name)
        )
        for job in snapshot.jobs
    }
    return RecordedState(
        jobs,
        {CONTROLLER: setting.model_dump(mode="json"), **dict(encode_telemetry(snapshot)), SHARED_MEMORY: memory.shared},
    )


def changed_facts(before: RecordedState, after: RecordedState, codec: SnapshotCodec) -> Iterator[tuple[FactKey, Body]]:
    """The facts that differ between two states; the body of one that ends is None."""
    for name, job in after.jobs.items():
        yield from _changed_job_facts(before.jobs.get(name), job, codec)
    for name in sorted(before.jobs.keys() - after.jobs.keys()):
        yield from ((FactKey(kind, name), None) for kind in _OF_A_JOB)
    for key, body in after.bodies.items():
        if before.bodies.get(key) != body:
            yield key, body


def _changed_job_facts(
    before: _RecordedJob | None, after: _RecordedJob, codec: SnapshotCodec
) -> Iterator[tuple[FactKey, Body]]:
    name = after.job.name
    if before is None or (before.job is not after.job and before.job != after.job):
        yield FactKey(FactKind.JOB, name), codec.encode_job(after.job)
    are_same_flows = before is not None and before.flows == after.flows
    if before is None or before.plan != after.plan or not are_same_flows:
        yield FactKey(FactKind.ORDER, name), encode_order(after.plan, after.flows)
    if before is None or (not are_same_flows and encode_paths(before.flows) != encode_paths(after.flows)):
        yield FactKey(FactKind.PATHS, name), encode_paths(after.flows)
    if (before.memory if before is not None else None) != after.memory:
        yield FactKey(FactKind.MEMORY, name), after.memory
