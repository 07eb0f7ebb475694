"""Orders of flow groups that the search begins with: by the fluid bound and Smith's rule, and Crux's order."""

import numpy as np

from policies.arrays import FloatArray, IntArray
from policies.crux.correction_factor import correction_factors
from policies.intensity import Iteration
from policies.trainyard.contention import Contention
from policies.trainyard.fluid_bound import FluidBound

_FULL = 1 - 1e-3
"""A job with at least this share in the fluid bound counts as fully served; the shares are not exact."""


def fluid_bound_order(contention: Contention, bound: FluidBound) -> IntArray:
    """Return the flow groups, most urgent first; ties in the order of the jobs and their groups.

    First come the groups of jobs that the bound serves fully, by Smith's rule, w / (p + slack). The others follow by
    their job's share in the bound, and then by the job's worth over what its links charge.
    """
    job, smith = contention.job_of_group, smith_ratios(contention)
    is_full = bound.share[job] >= _FULL
    with np.errstate(divide="ignore", invalid="ignore"):
        value = np.nan_to_num(contention.worth / bound.charge, nan=0.0)[job]
    share = np.where(is_full, 1.0, bound.share[job])
    return np.lexsort((np.arange(len(job)), -smith, np.where(is_full, 0.0, -value), -share))


def crux_order(contention: Contention) -> IntArray:
    """Return the flow groups by the priority P = k I of their jobs (Crux, section 4.2), in a job by Smith's rule."""
    comm_s = contention.comm_s
    jobs = [
        Iteration(compute_s, min(release_s / compute_s, 1.0), transfer_s)
        for compute_s, release_s, transfer_s in zip(
            contention.compute_s.tolist(),
            contention.release_s[contention.first_transfer[:-1]].tolist(),
            comm_s.tolist(),
            strict=True,
        )
    ]
    reference = int(np.argmax(comm_s))
    factors = np.array(correction_factors(jobs, jobs[reference]))
    factors[reference] = 1.0
    priority = (factors * contention.intensity)[contention.job_of_group]
    return np.lexsort((np.arange(len(priority)), -smith_ratios(contention), contention.job_of_group, -priority))


def smith_ratios(contention: Contention) -> FloatArray:
    """Return w / (p + slack) of every flow group; 0 for one that sends nothing.

    w is the worth of the group's job. p is how long a transfer of the group occupies its bottleneck link, and p + slack
    is the window from its release to its due time or p, whichever is longer; both are means over the group's transfers.
    """
    window_s = contention.mean_by_group(np.maximum(contention.due_s - contention.release_s, contention.bottleneck_s))
    sends = contention.mean_by_group(contention.bottleneck_s) > 0
    worth = contention.worth[contention.job_of_group]
    return np.where(sends, worth / np.where(sends, window_s, 1.0), 0.0)
