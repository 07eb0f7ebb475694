"""Jobs as coflows: how long one iteration occupies every link, and how much each job weighs.

For a policy that decides at job events, all flows of one iteration of a job are one coflow.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from itertools import chain, pairwise
from typing import Self

import numpy as np
import numpy.typing as npt
from scipy.sparse import coo_array, csr_array

from policies.arrays import FloatArray
from policies.flows import Flow, FlowKey
from policies.intensity import Iteration
from policies.job import Job
from policies.snapshot import Snapshot
from topologies.fabric import Path


class JobWeight(StrEnum):
    """What a coflow policy weighs a job by."""

    ONE = "one"
    GPUS = "gpus"


@dataclass(frozen=True, slots=True, eq=False)
class JobCoflow:
    """One iteration of a job on given paths.

    Attributes:
        job: The job.
        links: The links that it uses.
        seconds: By entry of ``links``, how long it occupies the link.
        iteration: The iteration that these make.
    """

    job: Job
    links: npt.NDArray[np.int32]
    seconds: FloatArray
    iteration: Iteration

    @classmethod
    def of(cls, job: Job, links: npt.NDArray[np.int32], seconds: FloatArray) -> Self:
        """Return the coflow of a job that occupies links for these times.

        Raises:
            ValueError: A time is infinite; the message names the job.
        """
        if not (comm_s := float(seconds.max(initial=0.0))) < np.inf:
            raise ValueError(f"job {job.name!r}: size_bytes are too large for its links")
        return cls(job, links, seconds, Iteration(job.profile.compute_s, job.profile.comm_start, comm_s))

    @property
    def intensity(self) -> float | None:
        """GPU intensity; None for a job that sends nothing."""
        return self.job.profile.work / self.iteration.comm_s if self.iteration.comm_s > 0 else None

    @property
    def sends(self) -> bool:
        """Whether it occupies any link at all."""
        return len(self.links) > 0


def job_coflows(snapshot: Snapshot, chosen: Mapping[FlowKey, Path] | None = None) -> list[JobCoflow]:
    """Return the coflows of all jobs, in order of their names.

    Args:
        snapshot: The jobs and links.
        chosen: Paths of flows; flows without one are on the path of the fabric's hash. Links inside hosts are added.

    Raises:
        ValueError: Sizes are too large for the links; the message names the job.
    """
    jobs = sorted(snapshot.jobs, key=lambda job: job.name)
    by_job = occupied_seconds(snapshot, [job.flows for job in jobs], chosen)
    rows = [slice(start, stop) for start, stop in pairwise(by_job.indptr.tolist())]
    return [JobCoflow.of(job, by_job.indices[row], by_job.data[row]) for job, row in zip(jobs, rows, strict=True)]


def occupied_seconds(
    snapshot: Snapshot, coflows: Sequence[Sequence[Flow]], chosen: Mapping[FlowKey, Path] | None = None
) -> csr_array:
    """Return seconds for which flows of each coflow (row) occupy each link (column); paths as for ``job_coflows``."""
    paths = chosen or {}
    flows = [(number, flow) for number, coflow in enumerate(coflows) for flow in coflow if flow.sends]
    links = [(*paths.get(flow.key, flow.hashed_path), *flow.host_links) for _, flow in flows]
    hops = [len(path) for path in links]
    coflow_of = np.repeat(np.array([number for number, _ in flows], dtype=np.int64), hops)
    link_of = np.fromiter(chain.from_iterable(links), dtype=np.int64, count=sum(hops))
    num_bytes = np.repeat(np.array([flow.size_bytes for _, flow in flows], dtype=np.float64), hops)
    seconds = coo_array((num_bytes, (coflow_of, link_of)), shape=(len(coflows), len(snapshot.links))).tocsr()
    with np.errstate(over="ignore"):
        seconds.data = seconds.data * 8 / snapshot.links.rates_bps[seconds.indices]
    seconds.eliminate_zeros()
    return seconds


def weights_of(coflows: Sequence[JobCoflow], weight: JobWeight) -> FloatArray:
    """Return the weight of every job."""
    return np.array([coflow.job.gpus if weight is JobWeight.GPUS else 1 for coflow in coflows], dtype=np.float64)


def seconds_by_link(coflows: Sequence[JobCoflow]) -> csr_array:
    """Return the seconds for which each job (row) occupies each link (column)."""
    ends = np.cumsum([0, *(len(coflow.links) for coflow in coflows)])
    columns = np.concatenate([np.empty(0, np.intp), *(coflow.links for coflow in coflows)])
    seconds = np.concatenate([np.empty(0), *(coflow.seconds for coflow in coflows)])
    return csr_array((seconds, columns, ends), shape=(len(coflows), int(columns.max(initial=-1)) + 1))
