"""Ranks compressed to the few levels that hardware has (Crux, section 4.3).

Jobs that share a link whose order a switch queue keeps form the communication-contention DAG: an edge leads from the
higher priority to the lower and weighs the higher one's intensity, which is what sharing a level would lose. The levels
are a maximum K-cut of it, for each of its connected components by itself.
"""

from collections.abc import Sequence
from itertools import pairwise

import numpy as np
from scipy.sparse import csr_array
from scipy.sparse.csgraph import connected_components

from policies.arrays import IntArray
from policies.crux.max_k_cut import max_k_cut


def compress(
    intensities: Sequence[float], sharing: csr_array, num_levels: int, seed: int, num_orders: int | None = None
) -> list[int]:
    """Levels of jobs that stand in order of rank: of two that share a link, the lower rank never gets the lower level.

    ``sharing`` has an entry from the more urgent of two jobs that share a link with levels to the other. In every
    component the most urgent group gets level ``num_levels - 1``, the others follow downwards without a gap. A job that
    shares no link gets the highest level too: there is nobody for it to overtake.
    """
    weights = np.repeat(np.array(intensities, dtype=np.float64), np.diff(sharing.indptr))
    edges = csr_array((weights, sharing.indices, sharing.indptr), shape=sharing.shape)
    levels: list[int] = levels_of_cut(edges, num_levels, seed, num_orders).tolist()
    return levels


def levels_of_cut(edges: csr_array, num_levels: int, seed: int, num_orders: int | None = None) -> IntArray:
    """Levels of nodes that stand in order of urgency, by a maximum K-cut of every component, as of ``compress``.

    ``edges`` has an entry from the more urgent of two nodes that share a link with levels to the other: what they lose
    on one level; where that is 0 it is an edge too.
    """
    levels = np.full(edges.shape[0], num_levels - 1)
    num_components, component_of = connected_components(edges, directed=False)
    if num_components == 1 and len(levels) > 1:
        return levels - max_k_cut(edges, num_levels, seed, num_orders)[1]
    # Components side by side; within each the order of rank stays, so that edges lead upwards.
    nodes = np.argsort(component_of, kind="stable")
    side_by_side = edges[nodes][:, nodes]
    bounds = np.searchsorted(component_of[nodes], np.arange(num_components + 1)).tolist()
    for begin, end in pairwise(bounds):
        if end - begin > 1:
            _, groups = max_k_cut(side_by_side[begin:end, begin:end], num_levels, seed, num_orders)
            levels[nodes[begin:end]] -= groups
    return levels
