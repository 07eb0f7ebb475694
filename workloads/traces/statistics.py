"""Statistics of a trace: for any trace, the figures that were published of the Lingjun dataset."""

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from workloads.schedulers.cluster import Cluster
from workloads.traces.assumptions import Assumptions
from workloads.traces.cleaning import CleanTrace, LoggedJob, clean
from workloads.traces.lingjun import LingjunRows, Rack, read_lingjun
from workloads.traces.simulated_jobs import SimulatedJob, simulated_jobs

DURATION_QUANTILES = (0.25, 0.5, 0.75, 0.9, 0.95, 0.99, 1.0)
QUEUE_QUANTILES = (0.5, 0.9, 0.99, 1.0)
LARGE_JOB_GPUS = 8
"""Jobs of at least this size count for the peak."""

_DAY_S = 86400.0


@dataclass(frozen=True, slots=True)
class Peak:
    """The moment when most jobs of at least 8 GPUs ran: their number and their GPUs."""

    jobs: int
    gpus: int


@dataclass(frozen=True, slots=True)
class TraceStatistics:
    """Figures of a trace; durations and queue times in minutes, by quantile.

    ``contending_share`` is the share of jobs that at some time share a rack's uplink with another job. A job with hosts
    in several racks uses the uplinks of all of them (Crux, section 2.2: 36.3 % of jobs).
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
        """Number of jobs with GPUs."""
        return sum(self.gpus.values())

    def share_up_to(self, gpus: int) -> float:
        """Return the share of jobs with GPUs that have at most ``gpus``."""
        return sum(jobs for size, jobs in self.gpus.items() if size <= gpus) / max(self.gpu_jobs, 1)


def describe(rows: LingjunRows, trace: CleanTrace) -> TraceStatistics:
    """Compute the statistics. Status, models, durations and queue times cover all rows, as in the published figures."""
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
    """Return the share of jobs that at some time share a rack's uplink with another job."""
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
    # Ends come before starts of the same moment.
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


@dataclass(frozen=True, slots=True)
class TraceSummary:
    """A trace with its statistics and jobs; ``too_large`` are jobs that ask for more GPUs than the topology has."""

    trace: CleanTrace
    statistics: TraceStatistics
    jobs: tuple[SimulatedJob, ...]
    too_large: tuple[SimulatedJob, ...]


def summarise(folder: Path, assumptions: Assumptions) -> TraceSummary:
    """Read, clean and describe the trace in a folder. Raises TraceError where it does not hold one."""
    rows = read_lingjun(folder)
    trace = clean(rows)
    cluster = Cluster.of_fabric(assumptions.fabric)
    jobs = simulated_jobs(trace.jobs, assumptions)
    return TraceSummary(
        trace,
        describe(rows, trace),
        tuple(job for job in jobs if cluster.fits(job.request)),
        tuple(job for job in jobs if not cluster.fits(job.request)),
    )
