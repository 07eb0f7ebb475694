"""GPU occupancy of a trace: the allocation of each job, from start to end, as long as it was logged to run."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from workloads.schedulers.admission import Admit
from workloads.schedulers.cluster import Allocation, Cluster
from workloads.traces.simulated_jobs import SimulatedJob, scheduled


@dataclass(frozen=True, slots=True)
class Occupancy:
    """A job on its GPUs from ``from_s`` to ``to_s``."""

    job: SimulatedJob
    allocation: Allocation
    from_s: float
    to_s: float

    @property
    def gpu_seconds(self) -> float:
        """GPUs times seconds."""
        return self.job.request.gpus * (self.to_s - self.from_s)


def gpu_occupancy(jobs: Sequence[SimulatedJob], cluster: Cluster, admit: Admit) -> tuple[Occupancy, ...]:
    """Place every job on the GPUs that a scheduler gives it, for its logged run time, in order of start."""
    by_name = {job.request.name: job for job in jobs}
    runs = scheduled(jobs, cluster, admit).runs
    return tuple(Occupancy(by_name[run.request.name], run.allocation, run.start_s, run.end_s) for run in runs)


def busiest_window(occupancies: Sequence[Occupancy], length_s: float) -> tuple[Occupancy, ...]:
    """Cut out the window in which jobs that use the network hold the most GPU-seconds; times count from its start.

    Windows start at whole multiples of the length. Of equally busy windows the first is taken.
    """
    held: dict[int, float] = {}
    for occupancy in occupancies:
        if occupancy.job.sends:
            for window in range(int(occupancy.from_s // length_s), int(occupancy.to_s // length_s) + 1):
                held[window] = held.get(window, 0.0) + _clipped(occupancy, window * length_s, length_s).gpu_seconds
    start_s = min(held, key=lambda window: (-held[window], window)) * length_s if held else 0.0
    clipped = (_clipped(occupancy, start_s, length_s) for occupancy in occupancies)
    return tuple(occupancy for occupancy in clipped if occupancy.to_s > occupancy.from_s)


def _clipped(occupancy: Occupancy, start_s: float, length_s: float) -> Occupancy:
    from_s, to_s = (min(max(time_s - start_s, 0.0), length_s) for time_s in (occupancy.from_s, occupancy.to_s))
    return replace(occupancy, from_s=from_s, to_s=to_s)
