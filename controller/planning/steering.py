"""Steering by source port: new ports for which the hash of the fabric chooses the paths of a Plan."""

from collections.abc import Callable, Container, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING

from policies.flows import Flow, FlowKey
from policies.job import Job
from policies.plan import Plan
from policies.snapshot import Snapshot
from topologies.addressing import FiveTuple
from topologies.fabric import Path
from topologies.routing import Routing
from topologies.steering import steered_five_tuple

if TYPE_CHECKING:
    # gRPC is slow to import, and decisions do not need it.
    from controller.telemetry.probed_paths import ProbedPaths


def source_port_changes(
    plan: Plan, snapshot: Snapshot, routing: Routing, probed: "ProbedPaths | None" = None
) -> dict[FlowKey, FiveTuple]:
    """New 5-tuples for flows whose path in the Plan is not that of the hash, where the registry assigned the port.

    No two are equal, and none is that of a flow of the Snapshot. A flow without a fitting port is left to rules. Where
    ordinary switches hash, ports are those that probes have shown.
    """

    def find(flow: Flow, path: Path, taken: Container[FiveTuple]) -> FiveTuple | None:
        found = steered_five_tuple(flow.five_tuple, path, routing, taken)
        if found is None and probed is not None and routing.fabric.ordinary_switches:
            found = probed.steered_five_tuple(flow.five_tuple, path, taken, snapshot.time_s)
        return found

    return _changes(plan, snapshot, lambda flow, path: path == flow.hashed_path, find)


def probed_port_changes(plan: Plan, snapshot: Snapshot, probed: "ProbedPaths") -> dict[FlowKey, FiveTuple]:
    """The same where the hash is unknown: probes have shown that the ports lead to the paths of the Plan."""

    def find(flow: Flow, path: Path, taken: Container[FiveTuple]) -> FiveTuple | None:
        return probed.steered_five_tuple(flow.five_tuple, path, taken, snapshot.time_s)

    return _changes(plan, snapshot, lambda flow, path: flow.is_hash_probed and path == flow.hashed_path, find)


def _changes(
    plan: Plan,
    snapshot: Snapshot,
    is_there: Callable[[Flow, Path], bool],
    find: Callable[[Flow, Path, Container[FiveTuple]], FiveTuple | None],
) -> dict[FlowKey, FiveTuple]:
    taken = {flow.five_tuple for job in snapshot.jobs for flow in job.flows}
    changes: dict[FlowKey, FiveTuple] = {}
    for job in snapshot.jobs:
        for flow in job.flows:
            path = plan.flows[flow.key].path
            if flow.is_assigned and path is not None and not is_there(flow, path):
                found = find(flow, path, taken)
                if found is not None:
                    taken.add(found)
                    changes[flow.key] = found
    return changes


def with_source_ports(
    snapshot: Snapshot, plan: Plan, five_tuples: Mapping[FlowKey, FiveTuple], *, is_probed: bool = False
) -> Snapshot:
    """The Snapshot in which these flows have these 5-tuples, whose hashed paths are those of the Plan.

    ``is_probed`` says whether probes have shown these paths.
    """
    jobs_changed = {key.job for key in five_tuples}

    def moved(flow: Flow) -> Flow:
        path = plan.flows[flow.key].path
        if path is None or flow.key not in five_tuples:
            return flow
        return replace(flow, five_tuple=five_tuples[flow.key], hashed_path=path, is_hash_probed=is_probed)

    def job_moved(job: Job) -> Job:
        groups = (replace(group, flows=tuple(map(moved, group.flows))) for group in job.flow_groups)
        return replace(job, flow_groups=tuple(groups))

    jobs = (job_moved(job) if job.name in jobs_changed else job for job in snapshot.jobs)
    return replace(snapshot, jobs=tuple(jobs))
