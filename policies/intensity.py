"""GPU intensity: what a job computes for each second that it keeps its bottleneck link busy.

Crux, section 3, definition 2: ``I = W / t``, where t is the maximum over all links of the job's bytes per iteration
over the link's bandwidth. Every link counts, those inside hosts too.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from policies.arrays import FloatArray
from policies.flows import Flow
from policies.job import Job
from policies.traffic import Traffic
from topologies.fabric import Path

MAX_ITERATION_S = 1e7


@dataclass(frozen=True, slots=True)
class Iteration:
    """One iteration of a job: a compute phase, and a communication phase that begins when part of it is done.

    The next iteration begins when both have ended.

    Attributes:
        compute_s: Length of the compute phase.
        comm_start: Communication begins when this fraction of the compute phase is done.
        comm_s: Length of the communication on an idle network.
    """

    compute_s: float
    comm_start: float
    comm_s: float

    @property
    def ready_s(self) -> float:
        """Time into the iteration at which communication may begin."""
        return self.compute_s * self.comm_start

    @property
    def duration_s(self) -> float:
        """Length of an iteration that waits for no other job."""
        return max(self.compute_s, self.ready_s + self.comm_s)


@dataclass(frozen=True, slots=True, eq=False)
class Demand:
    """The demand of a job on given paths.

    Attributes:
        job: The job.
        bytes_by_link: By link, bytes per iteration.
        iteration: The iteration that these make.
    """

    job: Job
    bytes_by_link: FloatArray
    iteration: Iteration

    @property
    def intensity(self) -> float | None:
        """I = W/t, in GPUs where work is in GPU-seconds; None for a job that sends nothing."""
        return intensity(self.job, self.iteration)


def iterations(jobs: Sequence[Job], transfer_s: FloatArray) -> list[Iteration]:
    """Return the iterations of jobs with these communication times.

    Raises:
        ValueError: A time is too long to compute with, or NaN; the message names the job.
    """
    for number in np.flatnonzero(~(transfer_s <= MAX_ITERATION_S / 2)).tolist():
        raise ValueError(
            f"job {jobs[number].name!r}: size_bytes make a transfer of {transfer_s[number]:g} s,"
            f" at most {MAX_ITERATION_S / 2:g} s can be compared"
        )
    return [
        Iteration(job.profile.compute_s, job.profile.comm_start, comm_s)
        for job, comm_s in zip(jobs, transfer_s.tolist(), strict=True)
    ]


def intensity(job: Job, iteration: Iteration) -> float | None:
    """Return I = W/t, in GPUs where work is in GPU-seconds; None for a job that sends nothing.

    No path and no level can speed up such a job, so policies rank it after all others.
    """
    return job.profile.work / iteration.comm_s if iteration.comm_s > 0 else None


def demand(job: Job, link_rates_bps: FloatArray, paths_of: Callable[[Flow], Sequence[Path]]) -> Demand:
    """Return the demand of a job whose flows are each spread evenly over the paths that ``paths_of`` gives.

    Links inside hosts count too: a job uses them on every path.
    """
    loads = Traffic.with_paths([job], paths_of).loads(len(link_rates_bps))
    (iteration,) = iterations([job], loads.transfer_s(link_rates_bps))
    return Demand(job, loads.of(0), iteration)


def most_intense_first(value: float | None, name: str) -> tuple[float, str]:
    """Return a sort key: decreasing intensity or priority, None counts as 0, ties by name."""
    return (-(value or 0.0), name)
