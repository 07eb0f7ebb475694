"""Jobs on a cluster over time, each running as long as it says: who runs where, and from when."""

import heapq
from collections.abc import Iterable
from dataclasses import dataclass

from workloads.schedulers.cluster import Allocation, Cluster, ClusterState, GpuRequest
from workloads.schedulers.queue import Admit


@dataclass(frozen=True, slots=True)
class Run:
    """A job's time on its GPUs; what ``shares_with`` it are the other jobs of its group."""

    request: GpuRequest
    start_s: float
    allocation: Allocation
    shares_with: tuple[str, ...] = ()

    @property
    def end_s(self) -> float:
        return self.start_s + self.request.run_time_s


@dataclass(frozen=True, slots=True)
class Schedule:
    """Runs in the order in which they began, and the requests that the whole cluster could not meet."""

    runs: tuple[Run, ...]
    impossible: tuple[GpuRequest, ...]


def schedule(requests: Iterable[GpuRequest], cluster: Cluster, admit: Admit) -> Schedule:
    """Let jobs come at their arrival, wait where there is no room, and give their GPUs back after their run time.

    A simulation, in which run times depend on who shares links, calls ``admit`` itself at the same events.
    """
    ordered = sorted(requests, key=lambda request: request.arrival_s)
    impossible = tuple(request for request in ordered if not cluster.fits(request))
    arrivals = iter([request for request in ordered if cluster.fits(request)])
    state = ClusterState.empty(cluster)
    waiting: tuple[GpuRequest, ...] = ()
    ends: list[tuple[float, int, Allocation]] = []
    runs: list[Run] = []
    coming = next(arrivals, None)
    while coming is not None or ends:
        now_s = min(coming.arrival_s if coming else float("inf"), ends[0][0] if ends else float("inf"))
        while ends and ends[0][0] <= now_s:
            state = state.give_back(heapq.heappop(ends)[2])
        while coming is not None and coming.arrival_s <= now_s:
            waiting, coming = (*waiting, coming), next(arrivals, None)
        admission = admit(state, waiting)
        state, waiting = admission.state, admission.waiting
        for start in admission.starts:
            for member in start.members:
                others = tuple(other.name for other in start.members if other is not member)
                runs.append(Run(member, now_s, start.allocation, others))
            end_s = now_s + max(member.run_time_s for member in start.members)
            heapq.heappush(ends, (end_s, len(runs), start.allocation))
    return Schedule(tuple(runs), impossible)
