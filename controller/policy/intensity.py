"""What a job asks of the network in one iteration, and the GPU intensity that follows.

Crux, section 3, definition 2: ``I = W / t`` with ``t`` the maximum over all links of the job's bytes per iteration over
the link's bandwidth. Every link counts, those of the hosts too.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import chain

import numpy as np
import numpy.typing as npt

from controller.policy.snapshot import Flow, Job, LinkState
from topologies.fabric import Path

FloatArray = npt.NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Iteration:
    """One iteration of a job: a compute phase, and a communication that begins when part of it is done.

    ``comm_start`` is that fraction of ``compute_s``; ``comm_s`` the time the communication takes on an idle network.
    The next iteration begins when both have ended.
    """

    compute_s: float
    comm_start: float
    comm_s: float

    @property
    def ready_s(self) -> float:
        """Time into the iteration at which the communication may begin."""
        return self.compute_s * self.comm_start

    @property
    def duration_s(self) -> float:
        """Length of an iteration that waits for no other job."""
        return max(self.compute_s, self.ready_s + self.comm_s)


@dataclass(frozen=True, slots=True, eq=False)
class Demand:
    """A job's demand for given paths: bytes per iteration on every link, and the iteration they make."""

    job: Job
    bytes_by_link: FloatArray
    iteration: Iteration

    @property
    def intensity(self) -> float | None:
        """I = W/t, in GPUs where work is in GPU-seconds; None for a job that sends nothing.

        No path and no level can speed up such a job, so it is ranked after all others.
        """
        return self.job.profile.work / self.iteration.comm_s if self.iteration.comm_s > 0 else None


def rates_bps(links: Sequence[LinkState]) -> FloatArray:
    """Rates of all links as an array."""
    return np.array([link.rate_bps for link in links], dtype=np.float64)


def demand(job: Job, link_rates_bps: FloatArray, paths_of: Callable[[Flow], Sequence[Path]]) -> Demand:
    """Demand of a job whose every flow is spread evenly over the paths that ``paths_of`` gives it.

    Links inside hosts count besides: their share of t is the job's own, whatever the path.
    """
    bytes_by_link = np.zeros(len(link_rates_bps))
    for flow in job.flows:
        paths = paths_of(flow)
        links = np.fromiter(chain.from_iterable(paths), dtype=np.intp)
        np.add.at(bytes_by_link, links, flow.size_bytes / len(paths))
        bytes_by_link[list(flow.host_links)] += flow.size_bytes
    comm_s = float(np.max(bytes_by_link * 8 / link_rates_bps, initial=0.0))
    return Demand(job, bytes_by_link, Iteration(job.profile.compute_s, job.profile.comm_start, comm_s))


def spread_demand(job: Job, link_rates_bps: FloatArray) -> Demand:
    """Demand while paths are still to be chosen: every flow evenly over its candidates."""
    return demand(job, link_rates_bps, lambda flow: flow.candidates)


def most_intense_first(value: float | None, name: str) -> tuple[float, str]:
    """Sort key: decreasing intensity or priority, none at all as nought, ties by name."""
    return (-(value or 0.0), name)
