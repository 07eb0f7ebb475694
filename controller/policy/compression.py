"""Ranks compressed to the few levels that hardware has (Crux, section 4.3).

Jobs that share a link whose order a switch queue keeps form the communication-contention DAG: an edge leads from the
higher priority to the lower and weighs the higher one's intensity, which is what sharing a level would lose. The levels
are a maximum K-cut of it: the best split of a topological order into consecutive groups, over a number of random orders
(algorithm 1).
"""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from random import Random

import numpy as np
import numpy.typing as npt

from controller.policy.intensity import FloatArray

NUM_ORDERS = 10

BoolArray = npt.NDArray[np.bool_]


@dataclass(frozen=True, slots=True)
class Contender:
    """A job as compression sees it: unique rank (0 the most urgent), intensity, and the ordered links that it uses."""

    name: str
    rank: int
    intensity: float
    links: frozenset[int]


def compress(
    contenders: Sequence[Contender], num_levels: int, seed: int, num_orders: int = NUM_ORDERS
) -> dict[str, int]:
    """Level of every job by name: of two that share a link, the lower rank never gets the lower level.

    The most urgent group gets level ``num_levels - 1``, the others follow downwards without a gap. A job that shares
    no link gets the highest level too: there is nobody for it to overtake.
    """
    nodes = sorted(contenders, key=lambda contender: contender.name)
    levels = dict.fromkeys((node.name for node in nodes), num_levels - 1)
    shares = _shares_a_link(nodes)
    contending = np.flatnonzero(shares.any(axis=1))
    nodes = [nodes[index] for index in contending]
    ranks = np.array([node.rank for node in nodes])
    edges = shares[np.ix_(contending, contending)] & (ranks[:, None] < ranks)
    weights = edges * np.array([node.intensity for node in nodes])[:, None]
    random = Random(seed)
    best_weight, best_groups = -1.0, list[list[int]]()
    for _ in range(num_orders):
        order = _random_topological_order(edges, random)
        weight, bounds = _best_split(weights[np.ix_(order, order)], num_levels)
        if weight > best_weight:
            best_weight, best_groups = weight, [order[start:stop] for start, stop in pairwise(bounds)]
    for position, group in enumerate(best_groups):
        for node in group:
            levels[nodes[node].name] = num_levels - 1 - position
    return levels


def _shares_a_link(nodes: Sequence[Contender]) -> BoolArray:
    columns = {link: column for column, link in enumerate(sorted(frozenset().union(*(node.links for node in nodes))))}
    uses = np.zeros((len(nodes), len(columns)), dtype=np.float32)
    for row, node in enumerate(nodes):
        uses[row, [columns[link] for link in node.links]] = 1
    shares: BoolArray = uses @ uses.T > 0
    np.fill_diagonal(shares, False)
    return shares


def _random_topological_order(edges: BoolArray, random: Random) -> list[int]:
    """Kahn's algorithm, with a random choice among the nodes whose predecessors are all placed."""
    predecessors = edges.sum(axis=0)
    ready = np.flatnonzero(predecessors == 0).tolist()
    order = []
    while ready:
        node = ready.pop(random.randrange(len(ready)))
        order.append(node)
        successors = np.flatnonzero(edges[node])
        predecessors[successors] -= 1
        ready += successors[predecessors[successors] == 0].tolist()
    return order


def _best_split(weights: FloatArray, num_groups: int) -> tuple[float, list[int]]:
    """Largest weight cut by splitting an order into at most ``num_groups`` groups, and the bounds of these groups.

    ``best[i]`` is the largest weight cut among the first i nodes; one more group, begun after node j, adds
    ``crossing[j, i]``, the weight of the edges from the first j nodes to the following ones up to i.
    """
    size = len(weights)
    sums = np.zeros((size + 1, size + 1))
    sums[1:, 1:] = weights.cumsum(axis=0).cumsum(axis=1)
    crossing = np.where(np.tri(size + 1, k=-1, dtype=bool), -np.inf, sums - sums.diagonal()[:, None])
    best, starts = np.zeros(size + 1), []
    for _ in range(num_groups - 1):
        totals = best[:, None] + crossing
        starts.append(totals.argmax(axis=0))
        best = totals.max(axis=0)
    bounds = [size]
    for start in reversed(starts):
        bounds.append(int(start[bounds[-1]]))
    return float(best[size]), sorted({0, *bounds})
