"""Orders of jobs that the search begins with: by the fluid bound and Smith's rule, and Crux's order."""

import numpy as np

from policies.arrays import FloatArray, IntArray
from policies.crux.correction_factor import correction_factors
from policies.intensity import Iteration
from policies.trainyard.contention import Contention
from policies.trainyard.fluid_bound import FluidBound

_FULL = 1 - 1e-3
"""A job with at least this share in the fluid bound counts as fully served; the shares are not exact."""


def fluid_bound_order(contention: Contention, bound: FluidBound) -> IntArray:
    """Return the jobs, most urgent first; ties in their order.

    First come the jobs that the bound serves fully, by Smith's rule, w / (p + slack). The others follow by their share
    in the bound, and then by their worth over what their links charge.
    """
    smith = smith_ratios(contention)
    is_full = bound.share >= _FULL
    with np.errstate(divide="ignore", invalid="ignore"):
        value = np.nan_to_num(contention.worth / bound.charge, nan=0.0)
    share = np.where(is_full, 1.0, bound.share)
    return np.lexsort((np.arange(len(smith)), -smith, np.where(is_full, 0.0, -value), -share))


def crux_order(contention: Contention) -> IntArray:
    """Return the jobs by their priority P = k I (Crux, section 4.2); ties by Smith's rule."""
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
    priority = factors * contention.intensity
    return np.lexsort((np.arange(len(priority)), -smith_ratios(contention), -priority))


def smith_ratios(contention: Contention) -> FloatArray:
    """Return w / (p + slack) of every job.

    w is its worth. p is how long a transfer occupies its bottleneck link, and p + slack is the window from its release
    to its due time or p, whichever is longer; both are means over the job's transfers.
    """
    window_s = contention.mean_by_job(np.maximum(contention.due_s - contention.release_s, contention.bottleneck_s))
    return np.where(window_s > 0, contention.worth / np.where(window_s > 0, window_s, 1.0), 0.0)
