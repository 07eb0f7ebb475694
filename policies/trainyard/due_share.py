"""The least that every job is to get, so that nobody starves.

The fluid bound serves a job not at all where its links feed more computation elsewhere. Therefore no job is to get much
less than what is due to it: its share in the fluid bound, or its fair share where that is more. And no iteration is to
take very long where the job's fair share would make it shorter.
"""

import numpy as np

from policies.arrays import FloatArray
from policies.trainyard.contention import Contention
from policies.trainyard.fluid_bound import FluidBound

_FULL = 1e-9


def least_shares(
    contention: Contention, bound: FluidBound, alone_s: FloatArray, least_of_bound: float, longest_iteration_s: float
) -> FloatArray:
    """Return by job the least share of its iterations alone that it is to get.

    Args:
        contention: The jobs.
        bound: Their fluid bound.
        alone_s: By job, the time of an iteration alone.
        least_of_bound: The fraction of what is due to a job.
        longest_iteration_s: How long iterations may take where fair shares make them shorter.
    """
    fair = fair_shares(contention)
    return np.maximum(least_of_bound * np.maximum(bound.share, fair), np.minimum(fair, alone_s / longest_iteration_s))


def fair_shares(contention: Contention) -> FloatArray:
    """Return by job its max-min fair share: all shares grow alike until a link is full, then those of the others."""
    loads = contention.by_job
    rows = np.repeat(np.arange(loads.shape[0]), np.diff(loads.indptr))
    seconds = loads.data / contention.ideal_s[rows]
    share = np.zeros(loads.shape[0])
    left = np.ones(loads.shape[1])
    grows = np.ones(len(share), dtype=np.bool_)
    while grows.any():
        use = np.bincount(loads.indices, seconds * grows[rows], minlength=len(left))
        used = use > 0
        step = min(float((left[used] / use[used]).min(initial=1.0)), float((1 - share[grows]).min()))
        share[grows] += step
        left[used] = np.maximum(left[used] - step * use[used], 0.0)
        is_full = np.zeros(len(share), dtype=np.bool_)
        is_full[rows[used[loads.indices] & (left[loads.indices] <= _FULL) & (seconds > 0)]] = True
        grows &= ~is_full & (share < 1 - _FULL)
    return share
