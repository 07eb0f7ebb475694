"""Jobs on a cluster over time when their run times are known in advance."""

import heapq
from collections.abc import Iterable
from dataclasses import dataclass

from workloads.schedulers.admission import Admit
from workloads.schedulers.cluster import Allocation, Cluster, ClusterState, GpuRequest


@dataclass(frozen=True, slots=True)
class Run:
    """A job's time on its GPUs; ``shares_with`` names the other jobs of its group."""

    request: GpuRequest
    start_s: float
    allocation: Allocation
    shares_with: tuple[str, ...] = ()

    @property
    def end_s(self) -> float:
        """When the job ends."""
        return self.start_s + self.request.run_time_s


@dataclass(frozen=True, slots=True)
class Schedule:
    """Runs in order of their start, and the requests that are too large for the cluster."""

    runs: tuple[Run, ...]
    impossible: tuple[GpuRequest, ...]


def schedule(requests: Iterable[GpuRequest], cluster: Cluster, admit: Admit) -> Schedule:
    """Simulate a queue: jobs arrive, wait until they are admitted, and release their GPUs after their run time.

    A simulation in which run times depend on the network calls ``admit`` itself at the same events.
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
