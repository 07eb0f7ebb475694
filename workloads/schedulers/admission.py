"""Admission: which of the jobs in the queue start now."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from workloads.schedulers.cluster import Allocation, ClusterState, GpuRequest, Place
from workloads.schedulers.muri import group_jobs, shortest_remaining_service_first


@dataclass(frozen=True, slots=True)
class JobStart:
    """Jobs that start on the same GPUs: one job, or a group that shares them until its last job ends."""

    members: tuple[GpuRequest, ...]
    allocation: Allocation


@dataclass(frozen=True, slots=True)
class Admission:
    """The result of an admission: the jobs that start, those that still wait, and the GPUs that remain free."""

    state: ClusterState
    starts: tuple[JobStart, ...]
    waiting: tuple[GpuRequest, ...]


Admit = Callable[[ClusterState, Sequence[GpuRequest]], Admission]
"""Decides which waiting jobs, given in order of arrival, start now."""


def admit_in_order(place: Place) -> Admit:
    """Return the admission function for first come, first served: no job overtakes one that waits."""

    def admit(state: ClusterState, waiting: Sequence[GpuRequest]) -> Admission:
        starts: list[JobStart] = []
        for request in waiting:
            allocation = place(state, request)
            if allocation is None:
                break
            starts.append(JobStart((request,), allocation))
            state = state.take(allocation)
        return Admission(state, tuple(starts), tuple(waiting[len(starts) :]))

    return admit


def admit_in_groups(place: Place) -> Admit:
    """Return Muri's admission function: shortest jobs first, grouped where not all fit.

    A group without room lets others pass. Running jobs are not moved, whereas Muri regroups all jobs at intervals.
    """

    def admit(state: ClusterState, waiting: Sequence[GpuRequest]) -> Admission:
        starts: list[JobStart] = []
        in_order = shortest_remaining_service_first(waiting)
        for group in group_jobs(_within_reach(in_order, state.num_free), state.num_free):
            allocation = place(state, group.request)
            if allocation is not None:
                starts.append(JobStart(group.members, allocation))
                state = state.take(allocation)
        begun = {member for start in starts for member in start.members}
        return Admission(state, tuple(starts), tuple(request for request in waiting if request not in begun))

    return admit


def _within_reach(requests: Sequence[GpuRequest], num_free: int) -> list[GpuRequest]:
    """Return the first jobs that could fit into ``num_free`` GPUs if each GPU were shared by one job per resource."""
    reached, num_asked = [], 0
    for request in requests:
        if request.gpus <= num_free:
            num_asked += request.gpus
            if num_asked > num_free * max(1, len(request.stages_s)):
                break
            reached.append(request)
    return reached
