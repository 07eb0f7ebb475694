"""Compression of ranks to the few levels that hardware has (Crux, section 4.3).

Jobs that share a link whose order a switch queue keeps form the communication-contention DAG. An edge leads from the
job of higher priority to the other. Its weight is the intensity of the first job, which is what sharing a level would
lose. The levels are a maximum K-cut of each connected component.
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
    """Return the levels of jobs that stand in order of rank.

    Of two jobs that share a link, the one of lower rank never gets the lower level. In every component the most urgent
    group gets level ``num_levels - 1``, and the others follow downwards without a gap. A job that shares no link gets
    the highest level too, since it can overtake nobody.

    Args:
        intensities: By job.
        sharing: An entry from the more urgent of two jobs that share a link with levels to the other.
        num_levels: How many levels there are.
        seed: Of the orders that the cut tries.
        num_orders: How many orders the cut tries; None: as many as the size of the graph suggests.
    """
    weights = np.repeat(np.array(intensities, dtype=np.float64), np.diff(sharing.indptr))
    edges = csr_array((weights, sharing.indices, sharing.indptr), shape=sharing.shape)
    levels: list[int] = levels_of_cut(edges, num_levels, seed, num_orders).tolist()
    return levels


def levels_of_cut(edges: csr_array, num_levels: int, seed: int, num_orders: int | None = None) -> IntArray:
    """Return the levels of nodes that stand in order of urgency, by a maximum K-cut of each component.

    Args:
        edges: An entry from the more urgent of two nodes that share a link with levels to the other: what they lose on
            one level. An explicit 0 is an edge too.
        num_levels: As for ``compress``.
        seed: As for ``compress``.
        num_orders: As for ``compress``.
    """
    levels = np.full(edges.shape[0], num_levels - 1)
    num_components, component_of = connected_components(edges, directed=False)
    if num_components == 1 and len(levels) > 1:
        return levels - max_k_cut(edges, num_levels, seed, num_orders)[1]
    # Sort the nodes by component, and keep the order of rank within each.
    nodes = np.argsort(component_of, kind="stable")
    side_by_side = edges[nodes][:, nodes]
    bounds = np.searchsorted(component_of[nodes], np.arange(num_components + 1)).tolist()
    for begin, end in pairwise(bounds):
        if end - begin > 1:
            _, groups = max_k_cut(side_by_side[begin:end, begin:end], num_levels, seed, num_orders)
            levels[nodes[begin:end]] -= groups
    return levels
