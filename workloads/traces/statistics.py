"""What is known of a trace in numbers: those that were published of the Lingjun dataset, of any trace."""

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from workloads.traces.cleaning import CleanTrace, LoggedJob
from workloads.traces.lingjun import LingjunRows, Rack

DURATION_QUANTILES = (0.25, 0.5, 0.75, 0.9, 0.95, 0.99, 1.0)
QUEUE_QUANTILES = (0.5, 0.9, 0.99, 1.0)
LARGE_JOB_GPUS = 8
"""Jobs of so many GPUs count for the peak."""

_DAY_S = 86400.0


@dataclass(frozen=True, slots=True)
class Peak:
    """The moment when most jobs of at least 8 GPUs ran: how many, and their GPUs."""

    jobs: int
    gpus: int


@dataclass(frozen=True, slots=True)
class TraceStatistics:
    """A trace in numbers; durations and queues in minutes, each by quantile.

    ``contending_share`` is the share of jobs that at some time share the uplink of a rack with another job, where a job
    that has hosts in more racks than one uses the uplinks of all of them (Crux, section 2.2: 36.3 % of jobs).
    """

    jobs: int
    workers: int
    hosts: int
    racks: int
    status: Mapping[str, int]
    models: Mapping[str, int]
    gpus: Mapping[int, int]
    duration_min: Mapping[float, float]
    queue_min: Mapping[float, float]
    submitted_by_hour: tuple[int, ...]
    submitted_by_day: tuple[int, ...]
    contending_share: float
    peak: Peak

    @property
    def gpu_jobs(self) -> int:
        return sum(self.gpus.values())

    @property
    def mean_gpus(self) -> float:
        """Mean GPUs of the jobs that have any."""
        return sum(gpus * jobs for gpus, jobs in self.gpus.items()) / max(self.gpu_jobs, 1)

    def share_up_to(self, gpus: int) -> float:
        """Share of the jobs with GPUs that have at most so many."""
        return sum(jobs for size, jobs in self.gpus.items() if size <= gpus) / max(self.gpu_jobs, 1)


def describe(rows: LingjunRows, trace: CleanTrace) -> TraceStatistics:
    """The numbers of a trace. Status, models, durations and queues are those of all rows, as they were published."""
    ran = [row for row in rows.jobs if row.running_s is not None]
    durations_s = [row.ended_s - row.running_s for row in ran if row.ended_s is not None and row.running_s is not None]
    queues_s = [row.running_s - row.submitted_s for row in ran if row.submitted_s is not None and row.running_s]
    submitted_s = np.sort([row.submitted_s for row in rows.jobs if row.submitted_s is not None])
    hours = (submitted_s % _DAY_S // 3600).astype(int)
    days = ((submitted_s - submitted_s[0] // _DAY_S * _DAY_S) // _DAY_S).astype(int) if len(submitted_s) else hours
    return TraceStatistics(
        jobs=len(rows.jobs),
        workers=len(rows.workers),
        hosts=len(rows.racks),
        racks=len(set(rows.racks.values())),
        status=_by_count(Counter(row.status for row in rows.jobs)),
        models=_by_count(Counter(row.model for row in rows.jobs)),
        gpus=dict(sorted(Counter(job.gpus for job in trace.jobs).items())),
        duration_min=_quantiles([duration_s for duration_s in durations_s if duration_s >= 0], DURATION_QUANTILES),
        queue_min=_quantiles([queue_s for queue_s in queues_s if queue_s >= 0], QUEUE_QUANTILES),
        submitted_by_hour=tuple(np.bincount(hours, minlength=24).tolist()),
        submitted_by_day=tuple(np.bincount(days).tolist()),
        contending_share=contending_share(trace.jobs, trace.racks),
        peak=_peak(trace.jobs),
    )


def contending_share(jobs: Sequence[LoggedJob], racks: Mapping[str, Rack]) -> float:
    """Share of jobs that at some time share the uplink of a rack with another job."""
    by_rack: defaultdict[Rack, list[int]] = defaultdict(list)
    for number, job in enumerate(jobs):
        used = {racks[host] for host in job.gpus_by_host}
        if len(used) > 1:
            for rack in used:
                by_rack[rack].append(number)
    contending: set[int] = set()
    for numbers in by_rack.values():
        active: list[int] = []
        for number in sorted(numbers, key=lambda number: jobs[number].running_s):
            active = [other for other in active if jobs[other].ended_s > jobs[number].running_s]
            active.append(number)
            if len(active) > 1:
                contending.update(active)
    return len(contending) / max(len(jobs), 1)


def _peak(jobs: Sequence[LoggedJob]) -> Peak:
    large = [job for job in jobs if job.gpus >= LARGE_JOB_GPUS]
    # Who ends at a moment is gone before anyone begins.
    changes = sorted(
        [(job.running_s, 1, job.gpus) for job in large] + [(job.ended_s, -1, -job.gpus) for job in large],
        key=lambda change: change[:2],
    )
    running, peak = Peak(0, 0), Peak(0, 0)
    for _, more_jobs, more_gpus in changes:
        running = Peak(running.jobs + more_jobs, running.gpus + more_gpus)
        peak = max(peak, running, key=lambda moment: (moment.jobs, moment.gpus))
    return peak


def _quantiles(times_s: Sequence[float], quantiles: Sequence[float]) -> Mapping[float, float]:
    if not times_s:
        return {}
    return dict(zip(quantiles, (np.quantile(times_s, quantiles) / 60.0).tolist(), strict=True))


def _by_count(counts: Counter[str]) -> Mapping[str, int]:
    return dict(counts.most_common())
