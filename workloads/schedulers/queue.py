"""Who may begin: jobs that wait in a queue because the cluster is full."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from workloads.schedulers.cluster import Allocation, ClusterState, GpuRequest, Place
from workloads.schedulers.muri import group_jobs, shortest_remaining_service_first


@dataclass(frozen=True, slots=True)
class Start:
    """Jobs that begin on the same GPUs: one, or a group that shares them until its last job ends."""

    members: tuple[GpuRequest, ...]
    allocation: Allocation


@dataclass(frozen=True, slots=True)
class Admission:
    """What came of a queue: who begins, who still waits in order, and what is free then."""

    state: ClusterState
    starts: tuple[Start, ...]
    waiting: tuple[GpuRequest, ...]


Admit = Callable[[ClusterState, Sequence[GpuRequest]], Admission]
"""Decides who of those that wait, in order of arrival, begins now."""


def admit_in_order(place: Place) -> Admit:
    """First come, first served: nobody begins while someone who came before waits."""

    def admit(state: ClusterState, waiting: Sequence[GpuRequest]) -> Admission:
        starts: list[Start] = []
        for request in waiting:
            allocation = place(state, request)
            if allocation is None:
                break
            starts.append(Start((request,), allocation))
            state = state.take(allocation)
        return Admission(state, tuple(starts), tuple(waiting[len(starts) :]))

    return admit


def admit_in_groups(place: Place) -> Admit:
    """Muri: the shortest first, in groups where not all fit; a group for which there is no room lets others pass.

    Jobs that run are left where they are, while Muri suspends them and groups all anew at intervals.
    """

    def admit(state: ClusterState, waiting: Sequence[GpuRequest]) -> Admission:
        starts: list[Start] = []
        in_order = shortest_remaining_service_first(waiting)
        for group in group_jobs(_within_reach(in_order, state.num_free), state.num_free):
            allocation = place(state, group.request)
            if allocation is not None:
                starts.append(Start(group.members, allocation))
                state = state.take(allocation)
        begun = {member for start in starts for member in start.members}
        return Admission(state, tuple(starts), tuple(request for request in waiting if request not in begun))

    return admit


def _within_reach(requests: Sequence[GpuRequest], num_free: int) -> list[GpuRequest]:
    """The first that could have so many free GPUs if each were shared by as many as there are resources."""
    reached, num_asked = [], 0
    for request in requests:
        if request.gpus <= num_free:
            num_asked += request.gpus
            if num_asked > num_free * max(1, len(request.stages_s)):
                break
            reached.append(request)
    return reached
