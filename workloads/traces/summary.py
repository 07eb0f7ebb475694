"""Everything about a trace in a folder: what is left of it, its numbers, and its jobs for a simulation."""

from dataclasses import dataclass
from pathlib import Path

from workloads.schedulers.cluster import Cluster
from workloads.traces.assumptions import Assumptions
from workloads.traces.cleaning import CleanTrace, clean
from workloads.traces.lingjun import read_lingjun
from workloads.traces.sequence import SimulatedJob, simulated_jobs
from workloads.traces.statistics import TraceStatistics, describe


@dataclass(frozen=True, slots=True)
class TraceSummary:
    """A folder's trace; ``too_large`` are the jobs that ask for more GPUs than the assumed topology has."""

    trace: CleanTrace
    statistics: TraceStatistics
    jobs: tuple[SimulatedJob, ...]
    too_large: tuple[SimulatedJob, ...]


def summarise(folder: Path, assumptions: Assumptions) -> TraceSummary:
    """Read and judge a folder's trace. Raises TraceError where it is not one."""
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
