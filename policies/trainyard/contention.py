"""Jobs that contend, on the paths they have, as arrays: what each transfer asks of the links that several jobs use."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import pairwise
from typing import Self

import numpy as np
from scipy.sparse import csr_array

from policies.flow_arrays import FloatArray, IntArray
from policies.job import Job

_LEAST_COMPUTE = 1e-6
"""Share of an iteration that a job computes at least, so that one that computes nothing has iterations too."""


@dataclass(frozen=True, eq=False)
class Contention:
    """Jobs, each of which sends, with the transfers and flow groups of all.

    ``work`` is W by job, ``ideal_s`` the iteration time alone. Flow groups are numbered job after job; ``job_of_group``
    tells whose they are. The transfers of job j are those from ``first_transfer[j]`` on; transfer u belongs to group
    ``group_of[u]`` and occupies ``links[n]`` for ``seconds[n]``, n from ``first_entry[u]`` on. All links that only one
    job uses are one link, as long occupied as the longest of them; links are numbered afresh, first those that several
    jobs use: ``in_fabric`` has their numbers in the fabric.
    """

    compute_s: FloatArray
    work: FloatArray
    ideal_s: FloatArray
    job_of_group: IntArray
    first_transfer: IntArray
    group_of: IntArray
    release_s: FloatArray
    due_s: FloatArray
    first_entry: IntArray
    links: IntArray
    seconds: FloatArray
    num_links: int
    in_fabric: IntArray

    @classmethod
    def of(cls, jobs: Sequence[Job], occupied: csr_array) -> Self:
        """``occupied`` holds the seconds of every transfer of the jobs (row) on every link (column)."""
        windows = [job.windows for job in jobs]
        first_transfer = np.cumsum([0, *(len(each.group_of) for each in windows)])
        job_of = np.repeat(np.arange(len(jobs)), np.diff(first_transfer))
        num_groups = np.cumsum([0, *(len(job.flow_groups) for job in jobs)])
        by_job = sum_rows(occupied, first_transfer)
        is_shared = np.bincount(by_job.indices, minlength=occupied.shape[1]) > 1
        entries = is_shared[occupied.indices]
        row_of = np.repeat(np.arange(occupied.shape[0]), np.diff(occupied.indptr))
        number = np.cumsum(is_shared) - 1
        num_shared = int(is_shared.sum())
        own_s = np.zeros(occupied.shape[0])
        np.maximum.at(own_s, row_of[~entries], occupied.data[~entries])
        own = np.flatnonzero(own_s)
        rows = np.concatenate((row_of[entries], own))
        links = np.concatenate((number[occupied.indices[entries]], num_shared + job_of[own]))
        seconds = np.concatenate((occupied.data[entries], own_s[own]))
        by_row = np.argsort(rows, kind="stable")
        contention = cls(
            compute_s=np.array([job.profile.compute_s for job in jobs]),
            work=np.array([job.profile.work for job in jobs]),
            ideal_s=np.zeros(len(jobs)),
            job_of_group=np.repeat(np.arange(len(jobs)), np.diff(num_groups)),
            first_transfer=first_transfer,
            group_of=np.concatenate([each.group_of for each in windows]) + num_groups[job_of],
            release_s=np.concatenate([each.release_s for each in windows]),
            due_s=np.concatenate([each.due_s for each in windows]),
            first_entry=np.searchsorted(rows[by_row], np.arange(occupied.shape[0] + 1)),
            links=links[by_row].astype(np.int64),
            seconds=seconds[by_row],
            num_links=num_shared + len(jobs),
            in_fabric=np.flatnonzero(is_shared),
        )
        ideal_s = contention._alone_s()
        return replace(
            contention, ideal_s=ideal_s, compute_s=np.maximum(contention.compute_s, _LEAST_COMPUTE * ideal_s)
        )

    @cached_property
    def worth(self) -> FloatArray:
        """Computation per second that each job has alone: what a second of its delay costs."""
        return self.work / self.ideal_s

    @cached_property
    def job_of(self) -> IntArray:
        """The job of every transfer."""
        return np.repeat(np.arange(len(self.work)), np.diff(self.first_transfer))

    @cached_property
    def by_transfer(self) -> csr_array:
        """Seconds of every transfer (row) on every link (column)."""
        return csr_array((self.seconds, self.links, self.first_entry), shape=(len(self.group_of), self.num_links))

    @cached_property
    def by_job(self) -> csr_array:
        """Seconds per iteration of every job (row) on every link (column)."""
        return sum_rows(self.by_transfer, self.first_transfer)

    @cached_property
    def comm_s(self) -> FloatArray:
        """t by job: for how long the link that an iteration occupies longest is occupied."""
        longest: FloatArray = self.by_job.max(axis=1).toarray().ravel()
        return longest

    @cached_property
    def intensity(self) -> FloatArray:
        """I = W/t by job."""
        return self.work / self.comm_s

    @cached_property
    def groups_transfers(self) -> IntArray:
        """How many transfers each group has."""
        return np.bincount(self.group_of, minlength=len(self.job_of_group))

    def mean_by_group(self, values: FloatArray) -> FloatArray:
        """Mean over the transfers of every group; 0 for a group without any."""
        total = np.bincount(self.group_of, values, minlength=len(self.job_of_group))
        mean: FloatArray = total / np.maximum(self.groups_transfers, 1)
        return mean

    @cached_property
    def longest_s(self) -> FloatArray:
        """For how long each transfer occupies the link that it occupies longest."""
        longest_s = np.zeros(len(self.group_of))
        sends = np.diff(self.first_entry) > 0
        longest_s[sends] = np.maximum.reduceat(self.seconds, self.first_entry[:-1][sends])
        return longest_s

    @property
    def lasting(self) -> IntArray:
        """The contended links, as the fabric numbers them, that no other link outlasts whoever is served."""
        # Of links that are alike the first.
        by_link, first = np.unique(self.by_transfer.toarray().T, axis=0, return_index=True)
        kept: list[int] = []
        for link in np.lexsort((first, -by_link.sum(axis=1))).tolist():
            if by_link[link].any() and not (by_link[kept] >= by_link[link]).all(axis=1).any():
                kept.append(link)
        lasting = np.sort(first[kept])
        return self.in_fabric[lasting[lasting < len(self.in_fabric)]]

    def _alone_s(self) -> FloatArray:
        """Iteration times alone: where transfers of a job meet on a link, the one due first goes first."""
        ready_s = self.release_s[self.first_transfer[:-1]] + self.longest_s[self.first_transfer[:-1]]
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


def sum_rows(occupied: csr_array, first_row: IntArray) -> csr_array:
    """Rows from ``first_row[j]`` up to ``first_row[j + 1]`` as one row j."""
    if len(first_row) == occupied.shape[0] + 1:
        return occupied
    size = occupied.shape[0]
    ones = csr_array((np.ones(size), np.arange(size), first_row), shape=(len(first_row) - 1, size))
    return csr_array(ones @ occupied)
