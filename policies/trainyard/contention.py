"""Jobs that contend for links: the components of the contention graph, and one component as arrays.

Two jobs are neighbours in the contention graph where they may use the same link. Jobs of different components do not
affect each other.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import pairwise
from typing import Self

import numpy as np
from scipy.sparse import csr_array

from policies.arrays import FloatArray, IntArray, LinkArray
from policies.jit import Kernel
from policies.job import Job

_MIN_COMPUTE = 1e-6
"""Least compute time as a share of an iteration, so that a job that computes nothing has iterations too."""


def candidate_components(jobs: Sequence[Job]) -> list[tuple[Job, ...]]:
    """Return the components of the sending jobs by the links of all their candidate paths.

    These components depend on no decision, so no event in one of them changes what is best in another. Components are
    in order of their first jobs, jobs in the order given.
    """
    sending = [job for job in jobs if len(job.reachable_links)]
    return connected_jobs(sending, [job.reachable_links for job in sending])


def connected_jobs(jobs: Sequence[Job], links_of: Sequence[LinkArray | IntArray]) -> list[tuple[Job, ...]]:
    """Return the components of jobs by the links that each uses; in order as for ``candidate_components``."""
    links = np.concatenate([np.empty(0, np.int32), *links_of])
    first = np.cumsum([0, *map(len, links_of)])
    find_roots = _find_roots.for_steps(2 * len(links))
    members: dict[int, list[Job]] = {}
    for job, root in zip(jobs, find_roots(first, links).tolist(), strict=True):
        members.setdefault(root, []).append(job)
    return [tuple(of_component) for of_component in members.values()]


@Kernel
def _find_roots(first: IntArray, links: LinkArray | IntArray) -> IntArray:
    """Return by job the first job of its component: union-find in one pass over the links of all jobs.

    ``scipy.sparse.csgraph.connected_components`` takes four times as long, which is a fifth of a decision for 500 jobs.
    """
    num_jobs = len(first) - 1
    parent = np.arange(num_jobs)
    user = np.full(links.max() + 1 if len(links) else 0, -1)
    for job in range(num_jobs):
        root = job
        for link in links[first[job] : first[job + 1]]:
            other = user[link]
            user[link] = root
            if other >= 0 and other != root:
                while parent[other] != other:
                    parent[other] = parent[parent[other]]
                    other = parent[other]
                if other < root:
                    parent[root] = other
                    root = other
                elif root < other:
                    parent[other] = root
    for job in range(num_jobs):
        root = job
        while parent[root] != root:
            root = parent[root]
        parent[job] = root
    return parent


@dataclass(frozen=True, eq=False)
class Contention:
    """Jobs that contend on the paths they have, as arrays: how long each transfer occupies the links that jobs share.

    Every job sends something. Links are numbered afresh: first the links that several jobs use, then one link for each
    job, which stands for all links that this job alone uses and is occupied as long as the longest of them.

    Attributes:
        compute_s: By job, the compute time of an iteration.
        work: By job, W per iteration.
        ideal_s: By job, the time of an iteration when it runs alone.
        first_transfer: Job j has the transfers from ``first_transfer[j]`` up to ``first_transfer[j + 1]``.
        release_s: By transfer, as in ``Transfers``.
        due_s: By transfer, as in ``Transfers``.
        first_entry: Transfer u has the entries from ``first_entry[u]`` up to ``first_entry[u + 1]``.
        links: By entry, the link it is about.
        seconds: By entry, how long the transfer occupies this link.
        num_links: How many links there are.
        in_fabric: The numbers in the fabric of the links that several jobs use.
    """

    compute_s: FloatArray
    work: FloatArray
    ideal_s: FloatArray
    first_transfer: IntArray
    release_s: FloatArray
    due_s: FloatArray
    first_entry: IntArray
    links: IntArray
    seconds: FloatArray
    num_links: int
    in_fabric: IntArray

    @classmethod
    def of(cls, jobs: Sequence[Job], occupied_s: csr_array) -> Self:
        """Return the contention of jobs whose transfers (rows) occupy the links of the fabric (columns) for so long."""
        transfers = [job.transfers for job in jobs]
        first_transfer = np.cumsum([0, *(len(each.group_of) for each in transfers)])
        job_of = np.repeat(np.arange(len(jobs)), np.diff(first_transfer))
        by_job = sum_rows(occupied_s, first_transfer)
        is_shared = np.bincount(by_job.indices, minlength=occupied_s.shape[1]) > 1
        entries = is_shared[occupied_s.indices]
        row_of = np.repeat(np.arange(occupied_s.shape[0]), np.diff(occupied_s.indptr))
        number = np.cumsum(is_shared) - 1
        num_shared = int(is_shared.sum())
        own_s = np.zeros(occupied_s.shape[0])
        np.maximum.at(own_s, row_of[~entries], occupied_s.data[~entries])
        own = np.flatnonzero(own_s)
        rows = np.concatenate((row_of[entries], own))
        links = np.concatenate((number[occupied_s.indices[entries]], num_shared + job_of[own]))
        seconds = np.concatenate((occupied_s.data[entries], own_s[own]))
        by_row = np.argsort(rows, kind="stable")
        contention = cls(
            compute_s=np.array([job.profile.compute_s for job in jobs]),
            work=np.array([job.profile.work for job in jobs]),
            ideal_s=np.zeros(len(jobs)),
            first_transfer=first_transfer,
            release_s=np.concatenate([each.release_s for each in transfers]),
            due_s=np.concatenate([each.due_s for each in transfers]),
            first_entry=np.searchsorted(rows[by_row], np.arange(occupied_s.shape[0] + 1)),
            links=links[by_row].astype(np.int64),
            seconds=seconds[by_row],
            num_links=num_shared + len(jobs),
            in_fabric=np.flatnonzero(is_shared),
        )
        ideal_s = contention._alone_s()
        return replace(contention, ideal_s=ideal_s, compute_s=np.maximum(contention.compute_s, _MIN_COMPUTE * ideal_s))

    @cached_property
    def worth(self) -> FloatArray:
        """By job, its computation per second when it runs alone: what a second of its delay costs."""
        return self.work / self.ideal_s

    @cached_property
    def job_of(self) -> IntArray:
        """By transfer, its job."""
        return np.repeat(np.arange(len(self.work)), np.diff(self.first_transfer))

    @cached_property
    def by_transfer(self) -> csr_array:
        """Seconds for which each transfer (row) occupies each link (column)."""
        return csr_array((self.seconds, self.links, self.first_entry), shape=(len(self.release_s), self.num_links))

    @cached_property
    def by_job(self) -> csr_array:
        """Seconds per iteration for which each job (row) occupies each link (column)."""
        return sum_rows(self.by_transfer, self.first_transfer)

    @cached_property
    def comm_s(self) -> FloatArray:
        """By job, t of Crux: how long an iteration occupies the link that it occupies longest."""
        longest: FloatArray = self.by_job.max(axis=1).toarray().ravel()
        return longest

    @cached_property
    def intensity(self) -> FloatArray:
        """By job, the GPU intensity I = W/t."""
        return self.work / self.comm_s

    @cached_property
    def num_transfers(self) -> IntArray:
        """By job, how many transfers it has."""
        return np.diff(self.first_transfer)

    def mean_by_job(self, values: FloatArray) -> FloatArray:
        """Return the mean over the transfers of each job."""
        mean: FloatArray = np.bincount(self.job_of, values, minlength=len(self.work)) / self.num_transfers
        return mean

    @cached_property
    def bottleneck_s(self) -> FloatArray:
        """By transfer, how long it occupies the link that it occupies longest."""
        bottleneck_s = np.zeros(len(self.release_s))
        sends = np.diff(self.first_entry) > 0
        bottleneck_s[sends] = np.maximum.reduceat(self.seconds, self.first_entry[:-1][sends])
        return bottleneck_s

    def _alone_s(self) -> FloatArray:
        """Return iteration times alone: where transfers of a job share a link, the one due first goes first."""
        ready_s = self.release_s[self.first_transfer[:-1]] + self.bottleneck_s[self.first_transfer[:-1]]
        alone_s = np.maximum(self.compute_s, ready_s)
        for job, (begin, end) in enumerate(pairwise(self.first_transfer.tolist())):
            if end - begin == 1:
                continue
            free_at = np.zeros(self.num_links)
            stalled_s = 0.0
            for transfer in sorted(range(begin, end), key=lambda number: (self.due_s[number], number)):
                entries = slice(self.first_entry[transfer], self.first_entry[transfer + 1])
                links = self.links[entries]
                free_at[links] = (
                    np.maximum(free_at[links], self.release_s[transfer] + stalled_s) + self.seconds[entries]
                )
                stalled_s = max(stalled_s, float(free_at[links].max(initial=0.0)) - self.due_s[transfer])
            alone_s[job] = self.compute_s[job] + stalled_s
        return alone_s


def sum_rows(matrix: csr_array, first_row: IntArray) -> csr_array:
    """Return a matrix whose row j is the sum of the rows from ``first_row[j]`` up to ``first_row[j + 1]``."""
    if len(first_row) == matrix.shape[0] + 1:
        return matrix
    size = matrix.shape[0]
    ones = csr_array((np.ones(size), np.arange(size), first_row), shape=(len(first_row) - 1, size))
    return csr_array(ones @ matrix)
