"""What is due to every job: its share in the fluid bound, or its fair share where that is more.

The fluid bound serves a job not at all where its links feed more computation elsewhere. So that nobody starves, no job
is to get much less than what all could have alike.
"""

import numpy as np

from policies.arrays import FloatArray
from policies.trainyard.contention import Contention
from policies.trainyard.fluid_bound import FluidBound

_FULL = 1e-9


def due_shares(contention: Contention, bound: FluidBound) -> FloatArray:
    """Return by job the share of its iterations alone that is due to it."""
    return np.maximum(bound.share, fair_shares(contention))


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
