"""What a trace under a policy has shown."""

from dataclasses import dataclass
from typing import Self

import numpy as np

from policies.enforcement import Enforcement
from policies.rates.network import FloatArray


@dataclass(frozen=True, slots=True)
class TraceJobResult:
    """One job that has begun; times in seconds from the first submission, ``end_s`` None where the run ended first.

    ``shared_gpus_with`` are jobs that began on the same GPUs.
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
        """How long it waited for GPUs."""
        return self.start_s - self.arrival_s

    @property
    def run_slowdown(self) -> float | None:
        """Its time on GPUs over that on the fabric alone."""
        return None if self.end_s is None else (self.end_s - self.start_s) / self.ideal_run_time_s

    @property
    def slowdown(self) -> float | None:
        """Its job completion time, queueing included, over its time on the fabric alone."""
        return None if self.end_s is None else (self.end_s - self.arrival_s) / self.ideal_run_time_s


@dataclass(frozen=True, slots=True, eq=False)
class GpuSeries:
    """GPUs over time: means over equal intervals, of which the first begins at 0."""

    interval_s: float
    computing: FloatArray
    allocated: FloatArray

    @property
    def mean_utilisation(self) -> float:
        """Mean over the intervals in which any GPU is allocated, of the share of these that compute."""
        used = self.allocated > 0
        return float((self.computing[used] / self.allocated[used]).mean()) if used.any() else 0.0


@dataclass(frozen=True, slots=True)
class Counts:
    """What a run took: decisions, components laid out, times at which something happened in one, and iterations of jobs
    that send: computed event by event, repeated with an exact cycle, extrapolated at a steady rate."""

    decisions: int = 0
    components: int = 0
    events: int = 0
    iterations_computed: int = 0
    iterations_repeated: int = 0
    iterations_extrapolated: float = 0.0


@dataclass(frozen=True, slots=True)
class Distribution:
    """Slowdowns of jobs."""

    p50: float
    p99: float
    worst: float
    share_above_2: float
    share_above_10: float

    @classmethod
    def of(cls, slowdowns: FloatArray) -> Self | None:
        """Of these; None where there are none."""
        if not len(slowdowns):
            return None
        p50, p99 = np.percentile(slowdowns, (50, 99)).tolist()
        return cls(p50, p99, float(slowdowns.max()), float((slowdowns > 2).mean()), float((slowdowns > 10).mean()))


@dataclass(frozen=True, slots=True)
class TraceResult:
    """A run, whole or as far as it came: ``ended_s`` is when."""

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
        """Computing over allocated GPU-seconds: every allocated GPU weighs the same."""
        return self.computed_gpu_s / self.allocated_gpu_s if self.allocated_gpu_s else 0.0

    @property
    def cluster_utilisation(self) -> float:
        """Computing GPU-seconds over those of all GPUs of the cluster."""
        return self.computed_gpu_s / (self.gpus * self.ended_s) if self.ended_s else 0.0

    @property
    def mean_queueing_s(self) -> float:
        """Of the jobs that have begun."""
        return sum(job.queueing_s for job in self.jobs) / len(self.jobs) if self.jobs else 0.0

    @property
    def slowdowns(self) -> FloatArray:
        """Of the jobs that are done, ascending."""
        return np.sort([job.slowdown for job in self.jobs if job.slowdown is not None])

    @property
    def run_slowdowns(self) -> FloatArray:
        """Of the jobs that are done, without their queueing, ascending."""
        return np.sort([job.run_slowdown for job in self.jobs if job.run_slowdown is not None])
