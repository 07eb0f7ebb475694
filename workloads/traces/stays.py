"""Jobs of a trace as they were logged to run: where each is from when to when, whatever becomes of it meanwhile."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from workloads.schedulers.cluster import Allocation, Cluster
from workloads.schedulers.queue import Admit
from workloads.traces.sequence import SimulatedJob, scheduled


@dataclass(frozen=True, slots=True)
class Stay:
    """A job on its GPUs, from when to when."""

    job: SimulatedJob
    allocation: Allocation
    from_s: float
    to_s: float

    @property
    def gpu_seconds(self) -> float:
        return self.job.request.gpus * (self.to_s - self.from_s)


def stays(jobs: Sequence[SimulatedJob], cluster: Cluster, admit: Admit) -> tuple[Stay, ...]:
    """Every job for its logged run time, on the GPUs that a scheduler gives it, in the order in which they begin."""
    by_name = {job.request.name: job for job in jobs}
    runs = scheduled(jobs, cluster, admit).runs
    return tuple(Stay(by_name[run.request.name], run.allocation, run.start_s, run.end_s) for run in runs)


def busiest_part(all_stays: Sequence[Stay], length_s: float) -> tuple[Stay, ...]:
    """What lies within the part of this length in which jobs that send hold most GPU-seconds, times from its start.

    Parts begin at whole multiples of the length; of equal ones the first.
    """
    held: dict[int, float] = {}
    for stay in all_stays:
        if stay.job.sends:
            for part in range(int(stay.from_s // length_s), int(stay.to_s // length_s) + 1):
                held[part] = held.get(part, 0.0) + _within(stay, part * length_s, length_s).gpu_seconds
    begins_s = min(held, key=lambda part: (-held[part], part)) * length_s if held else 0.0
    cut = (_within(stay, begins_s, length_s) for stay in all_stays)
    return tuple(stay for stay in cut if stay.to_s > stay.from_s)


def _within(stay: Stay, begins_s: float, length_s: float) -> Stay:
    from_s, to_s = (min(max(time_s - begins_s, 0.0), length_s) for time_s in (stay.from_s, stay.to_s))
    return replace(stay, from_s=from_s, to_s=to_s)
