"""A first order of flow groups, from the fluid bound and Smith's rule (docs/trainyard-policy.md)."""

import numpy as np

from policies.compiled import Loop
from policies.flow_arrays import FloatArray, IntArray
from policies.trainyard.contention import Contention
from policies.trainyard.fluid_bound import FluidBound

_FULL = 1 - 1e-3
"""A job with a larger share in the fluid bound is served fully; the shares are not exact."""


def first_order(contention: Contention, bound: FluidBound) -> IntArray:
    """Flow groups, most urgent first; ties in the order of the jobs and their groups.

    Those of jobs that the bound serves fully come first, by w / (p + slack); then those of the others, by their job's
    share and what its computation is worth beside what its links charge.
    """
    job, smith = contention.job_of_group, smith_ratios(contention)
    is_full = bound.share[job] >= _FULL
    with np.errstate(divide="ignore", invalid="ignore"):
        value = np.nan_to_num(contention.worth / bound.charge, nan=0.0)[job]
    share = np.where(is_full, 1.0, bound.share[job])
    return np.lexsort((np.arange(len(job)), -smith, np.where(is_full, 0.0, -value), -share))


def smith_ratios(contention: Contention) -> FloatArray:
    """w / (p + slack) of every flow group; 0 for one that sends nothing.

    p is how long a transfer of the group occupies the link that it occupies longest, in the mean over its transfers;
    with the slack that makes the window from release to need, where that is longer.
    """
    window_s = contention.mean_by_group(np.maximum(contention.due_s - contention.release_s, contention.longest_s))
    sends = contention.mean_by_group(contention.longest_s) > 0
    worth = contention.worth[contention.job_of_group]
    return np.where(sends, worth / np.where(sends, window_s, 1.0), 0.0)


def served_in_turn(contention: Contention, order: IntArray) -> FloatArray:
    """Share of its iterations alone that each job gets if jobs take what links have left, in this order of groups.

    A job counts by its most urgent group. That is the fluid bound made greedy: nobody waits but for want of capacity.
    """
    job = contention.job_of_group
    loads = contention.by_job
    turns = job[order][np.sort(np.unique(job[order], return_index=True)[1])]
    take = _take.of(16 * len(loads.data))
    return take(
        turns,
        loads.indptr.astype(np.int64),
        loads.indices.astype(np.int64),
        loads.data,
        contention.ideal_s,
        contention.num_links,
    )


@Loop
def _take(
    turns: IntArray, first: IntArray, links: IntArray, seconds: FloatArray, ideal: FloatArray, num_links: int
) -> FloatArray:
    left = np.ones(num_links)
    served = np.zeros(len(ideal))
    for job in turns:
        rate = 1 / ideal[job]
        for entry in range(first[job], first[job + 1]):
            rate = min(rate, left[links[entry]] / seconds[entry])
        for entry in range(first[job], first[job + 1]):
            left[links[entry]] = max(left[links[entry]] - rate * seconds[entry], 0.0)
        served[job] = rate * ideal[job]
    return served
