"""The result of a trace under a policy, its GPU utilisation over time, and its JSON form."""

from dataclasses import asdict, dataclass
from typing import Self

import numpy as np

from policies.enforcement import Enforcement
from policies.rates.network import FloatArray


@dataclass(frozen=True, slots=True)
class TraceJobResult:
    """One job that has started; times are in seconds from the first submission.

    ``end_s`` is None where the run ended before the job did. ``shared_gpus_with`` names the jobs that started on the
    same GPUs.
    """

    name: str
    label: str
    gpus: int
    arrival_s: float
    start_s: float
    end_s: float | None
    ideal_run_time_s: float
    shared_gpus_with: tuple[str, ...] = ()

    @property
    def queueing_s(self) -> float:
        """How long the job waited for GPUs."""
        return self.start_s - self.arrival_s

    @property
    def run_slowdown(self) -> float | None:
        """Its time on GPUs over that of the job in isolation."""
        return None if self.end_s is None else (self.end_s - self.start_s) / self.ideal_run_time_s

    @property
    def slowdown(self) -> float | None:
        """Its completion time, queueing included, over that of the job in isolation."""
        return None if self.end_s is None else (self.end_s - self.arrival_s) / self.ideal_run_time_s


@dataclass(frozen=True, slots=True, eq=False)
class GpuSeries:
    """Mean numbers of GPUs over equal intervals, the first of which begins at 0."""

    interval_s: float
    computing: FloatArray
    allocated: FloatArray

    @property
    def mean_utilisation(self) -> float:
        """The mean share of allocated GPUs that compute, over the intervals in which any GPU is allocated."""
        used = self.allocated > 0
        return float((self.computing[used] / self.allocated[used]).mean()) if used.any() else 0.0


class GpuTime:
    """GPU-seconds over time, recorded in spans and averaged over intervals."""

    def __init__(self) -> None:
        self.total_s = 0.0
        self._spans: list[tuple[float, float, float]] = []

    def add(self, from_s: float, to_s: float, gpu_s: float) -> None:
        """Add GPU-seconds, spread evenly over a span; ignore a span without length."""
        if to_s > from_s:
            self.total_s += gpu_s
            self._spans.append((from_s, to_s, gpu_s))

    def means(self, interval_s: float, num_intervals: int) -> FloatArray:
        """Return the mean number of GPUs in each interval from 0 on."""
        spans = np.array(self._spans).reshape(-1, 3)
        gpus = spans[:, 2] / (spans[:, 1] - spans[:, 0])
        times_s, changes = np.concatenate((spans[:, 0], spans[:, 1])), np.concatenate((gpus, -gpus))
        order = times_s.argsort()
        times_s, level = np.append(0.0, times_s[order]), np.append(0.0, np.cumsum(changes[order]))
        total = np.append(0.0, np.cumsum(level[:-1] * np.diff(times_s)))
        bounds_s = interval_s * np.arange(num_intervals + 1)
        return np.asarray(np.diff(np.interp(bounds_s, times_s, total)) / interval_s)


@dataclass(frozen=True, slots=True)
class Counts:
    """The work of a run.

    It counts decisions, contention components, and events within these. Iterations of jobs that send were computed
    event by event, repeated with an exact cycle, or extrapolated at a steady rate.
    """

    decisions: int = 0
    components: int = 0
    events: int = 0
    iterations_computed: int = 0
    iterations_repeated: int = 0
    iterations_extrapolated: float = 0.0


@dataclass(frozen=True, slots=True)
class Distribution:
    """The distribution of the slowdowns of jobs."""

    p50: float
    p99: float
    worst: float
    share_above_2: float
    share_above_10: float

    @classmethod
    def of(cls, slowdowns: FloatArray) -> Self | None:
        """Return the distribution of these slowdowns, or None where there are none."""
        if not len(slowdowns):
            return None
        p50, p99 = np.percentile(slowdowns, (50, 99)).tolist()
        return cls(p50, p99, float(slowdowns.max()), float((slowdowns > 2).mean()), float((slowdowns > 10).mean()))


@dataclass(frozen=True, slots=True)
class TraceResult:
    """The result of a run until ``ended_s``, when it was over or was stopped."""

    policy: str
    enforcement: Enforcement
    seed: int
    gpus: int
    ended_s: float
    jobs: tuple[TraceJobResult, ...]
    num_waiting: int
    computed_gpu_s: float
    allocated_gpu_s: float
    series: GpuSeries
    counts: Counts

    @property
    def gpu_utilisation(self) -> float:
        """Computing over allocated GPU-seconds."""
        return self.computed_gpu_s / self.allocated_gpu_s if self.allocated_gpu_s else 0.0

    @property
    def cluster_utilisation(self) -> float:
        """Computing GPU-seconds over those of all GPUs in the cluster."""
        return self.computed_gpu_s / (self.gpus * self.ended_s) if self.ended_s else 0.0

    @property
    def mean_queueing_s(self) -> float:
        """The mean queueing time of the jobs that have started."""
        return sum(job.queueing_s for job in self.jobs) / len(self.jobs) if self.jobs else 0.0

    @property
    def slowdowns(self) -> FloatArray:
        """The slowdowns of finished jobs, ascending."""
        return np.sort([job.slowdown for job in self.jobs if job.slowdown is not None])

    @property
    def run_slowdowns(self) -> FloatArray:
        """The slowdowns of finished jobs without their queueing, ascending."""
        return np.sort([job.run_slowdown for job in self.jobs if job.run_slowdown is not None])


def trace_object(result: TraceResult) -> dict[str, object]:
    """Return the object that ``trainyard trace --json`` prints; times are in seconds, shares between 0 and 1."""
    return {
        "policy": result.policy,
        "enforcement": result.enforcement,
        "seed": result.seed,
        "gpus": result.gpus,
        "ended_s": result.ended_s,
        "num_done": len(result.slowdowns),
        "num_running": len(result.jobs) - len(result.slowdowns),
        "num_waiting": result.num_waiting,
        "gpu_utilisation": result.gpu_utilisation,
        "mean_gpu_utilisation": result.series.mean_utilisation,
        "cluster_utilisation": result.cluster_utilisation,
        "slowdown": _distribution(result.slowdowns),
        "run_slowdown": _distribution(result.run_slowdowns),
        "mean_queueing_s": result.mean_queueing_s,
        "counts": asdict(result.counts),
        "series": {
            "interval_s": result.series.interval_s,
            "computing_gpus": result.series.computing.tolist(),
            "allocated_gpus": result.series.allocated.tolist(),
        },
        "jobs": [
            {
                "name": job.name,
                "label": job.label,
                "gpus": job.gpus,
                "arrival_s": job.arrival_s,
                "start_s": job.start_s,
                "end_s": job.end_s,
                "ideal_run_time_s": job.ideal_run_time_s,
                "slowdown": job.slowdown,
                "run_slowdown": job.run_slowdown,
                "shared_gpus_with": job.shared_gpus_with,
            }
            for job in result.jobs
        ],
    }


def _distribution(slowdowns: FloatArray) -> dict[str, float] | None:
    distribution = Distribution.of(slowdowns)
    return None if distribution is None else asdict(distribution)
