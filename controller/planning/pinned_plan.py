"""Pins applied to the Plan of a policy: what operators have decided by hand goes before what the policy has."""

from dataclasses import replace

from policies.flows import FlowKey
from policies.job import Job
from policies.pins import LevelPin, PathPin, Pin
from policies.plan import FlowPlan, Plan
from policies.snapshot import Snapshot
from topologies.fabric import Path


def with_pins(plan: Plan, snapshot: Snapshot) -> Plan:
    """The Plan with the pins of its Snapshot that hold; the very same where none does.

    A level above those that policies may use now, as while a job is measured, counts as the highest of these.
    """
    held = held_pins(snapshot)
    if not held:
        return plan
    top = snapshot.num_levels - 1
    levels = {pin.job: min(pin.level, top) for pin in held if isinstance(pin, LevelPin)}
    paths = {pin.flow: pin.path for pin in held if isinstance(pin, PathPin)}
    flows = dict(plan.flows)
    for job in _pinned_jobs(held, snapshot):
        flows |= _flow_plans(job, plan, levels.get(job.name), paths)
    jobs = tuple(replace(job, level=levels[job.name]) if job.name in levels else job for job in plan.jobs)
    return replace(plan, jobs=jobs, flows=flows)


def held_pins(snapshot: Snapshot) -> tuple[Pin, ...]:
    """The pins of a Snapshot that hold in its Plan.

    None does that has expired, or whose job or flow is not there, or whose path is no candidate of the flow by now.
    """
    if not snapshot.pins:
        return ()
    jobs = {job.name for job in snapshot.jobs}
    flows = {flow.key: flow for job in _pinned_jobs(snapshot.pins, snapshot) for flow in job.registered_flows}

    def holds(pin: Pin) -> bool:
        if pin.until_s <= snapshot.time_s:
            return False
        if isinstance(pin, LevelPin):
            return pin.job in jobs
        flow = flows.get(pin.flow)
        return flow is not None and not flow.is_cut_off and pin.path in tuple(flow.candidates)

    return tuple(filter(holds, snapshot.pins))


def _pinned_jobs(pins: tuple[Pin, ...], snapshot: Snapshot) -> list[Job]:
    names = {pin.job if isinstance(pin, LevelPin) else pin.flow.job for pin in pins}
    return [job for job in snapshot.jobs if job.name in names]


def _flow_plans(job: Job, plan: Plan, level: int | None, paths: dict[FlowKey, Path]) -> dict[FlowKey, FlowPlan]:
    """What is planned for the flows of a job, with its level and their paths where these are pinned."""
    planned = {flow.key: plan.flows[flow.key] for flow in job.flows}
    return {
        key: before._replace(path=paths.get(key, before.path), level=before.level if level is None else level)
        for key, before in planned.items()
    }
