"""What jobs get where nothing but capacity counts, for components that are too large for the model."""

import numpy as np

from policies.arrays import FloatArray, IntArray
from policies.jit import Kernel
from policies.trainyard.contention import Contention


def served_in_turn(contention: Contention, order: IntArray) -> FloatArray:
    """Return by job the share of its iterations alone that it gets if jobs take the links' time greedily in order.

    This is the fluid bound made greedy: a job waits only for lack of capacity.
    """
    loads = contention.by_job
    take = _take.for_steps(16 * len(loads.data))
    return take(
        order,
        loads.indptr.astype(np.int64),
        loads.indices.astype(np.int64),
        loads.data,
        contention.ideal_s,
        contention.num_links,
    )


@Kernel
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
