"""Maximum K-cut of a DAG: K ordered groups of nodes without an edge backwards, cutting the most weight of edges.

Crux, section 4.3, algorithm 1: every split of a topological order into consecutive groups is such a cut (theorem 2),
and every cut comes from some order (theorem 3). So the best splits of a number of random orders come close to the
maximum.

The best split of one order is a dynamic program. With ``cross(j, i)`` the weight of the edges from the first j nodes to
the following ones up to i, ``f(k, i) = max_j f(k - 1, j) + cross(j, i)`` is the most that k groups cut among the first
i nodes. Weights are not negative, so cross satisfies the quadrangle inequality, and the best j of (k, i) lies between
those of (k, i - 1) and (k + 1, i) (Knuth, Acta Informatica 1, 1971; Yao, STOC 1980). Node after node, with k downwards,
these intervals telescope along the diagonals of i - k. That takes O(n (n + K)) time for each order, and O(nK) memory
since cross is needed for one i at a time.

Beyond the paper, three of four orders are drawn among those that the best cut so far comes from, which improves its
groups; the fourth starts afresh. A few dozen orders then do as well as hundreds of independent ones.
"""

from random import Random

import numpy as np
import numpy.typing as npt
from scipy.sparse import csr_array

from policies.arrays import FloatArray, IntArray
from policies.jit import Kernel

IndexArray = npt.NDArray[np.int32]

MAX_ORDERS, MIN_ORDERS, PAIRS_TRIED = 32, 8, 1 << 21
_FRESH_EVERY = 4


def default_num_orders(size: int) -> int:
    """Return how many orders to try for a graph of this size (measured: docs/policies.md)."""
    return min(max(PAIRS_TRIED // max(size, 1) ** 2, MIN_ORDERS), MAX_ORDERS)


def max_k_cut(edges: csr_array, num_groups: int, seed: int, num_orders: int | None = None) -> tuple[float, IntArray]:
    """Return the largest weight found and the group of every node, from 0, where edges begin, without a gap.

    Args:
        edges: Every entry, even a 0, is an edge from the node of its row to the node of its column, and its value, at
            least 0, is what cutting it is worth.
        num_groups: K.
        seed: Of the random orders.
        num_orders: How many orders to try; None: ``default_num_orders``.

    Raises:
        ValueError: The edges make a cycle, or there is less than one group or order.
    """
    size = edges.shape[0]
    num_orders = default_num_orders(size) if num_orders is None else num_orders
    if num_groups < 1 or num_orders < 1:
        raise ValueError(f"num_groups and num_orders must be at least 1, not {num_groups} and {num_orders}")
    random = Random(seed)
    draws = np.array([random.random() for _ in range(num_orders * size)]).reshape(num_orders, size)
    into = edges.tocsc()
    search = _search.for_steps(4 * num_orders * size**2)
    weight, groups = search(
        (edges.indptr.astype(np.int32), edges.indices.astype(np.int32)),
        (into.indptr.astype(np.int32), into.indices.astype(np.int32), into.data.astype(np.float64)),
        draws,
        min(num_groups, max(size, 1)),
        _FRESH_EVERY,
    )
    if weight < 0:
        raise ValueError("the edges make a cycle")
    return weight, np.unique(groups, return_inverse=True)[1]


@Kernel
def _search(
    out: tuple[IndexArray, IndexArray],
    into: tuple[IndexArray, IndexArray, FloatArray],
    draws: FloatArray,
    num_groups: int,
    fresh_every: int,
) -> tuple[float, IntArray]:
    """Return the best cut over the orders that ``draws`` make; a negative weight where there is no topological order.

    ``out`` holds the first successor of each node and the successors; ``into`` the first predecessor of each node, the
    predecessors, and the weights of the edges. An order comes from Kahn's algorithm, where each draw chooses among the
    nodes whose predecessors are all placed.
    """
    first_successor, successors = out
    first_predecessor, predecessors, weights = into
    size = len(first_successor) - 1
    best_weight, best_groups = -1.0, np.zeros(size, dtype=np.int64)
    order, place, ready = np.zeros((3, size), dtype=np.int64)
    cut = np.zeros((num_groups + 1, size + 1))
    begins = np.zeros((num_groups + 2, size + 1), dtype=np.int64)
    step = np.zeros(size + 1)
    for number in range(len(draws)):
        # Draw a topological order. Unless it is a fresh one, it takes the groups of the best cut one after another.
        is_fresh = number % fresh_every == 0
        missing = first_predecessor[1:] - first_predecessor[:-1]
        num_ready = 0
        for node in range(size):
            if missing[node] == 0:
                ready[num_ready] = node
                num_ready += 1
        for position in range(size):
            if num_ready == 0:
                return -1.0, best_groups
            pick = int(draws[number, position] * num_ready)
            if not is_fresh:
                group, among = num_groups, 0
                for index in range(num_ready):
                    if best_groups[ready[index]] < group:
                        group, among = best_groups[ready[index]], 0
                    among += best_groups[ready[index]] == group
                skipped = int(draws[number, position] * among)
                pick = 0
                while best_groups[ready[pick]] != group or skipped > 0:
                    skipped -= best_groups[ready[pick]] == group
                    pick += 1
            node = ready[pick]
            num_ready -= 1
            ready[pick] = ready[num_ready]
            order[position], place[node] = node, position
            for successor in successors[first_successor[node] : first_successor[node + 1]]:
                missing[successor] -= 1
                if missing[successor] == 0:
                    ready[num_ready] = successor
                    num_ready += 1
        # Find the best split of this order.
        cross = np.zeros(size + 1)
        for end in range(1, size + 1):
            node = order[end - 1]
            earliest = end
            for edge in range(first_predecessor[node], first_predecessor[node + 1]):
                begin = place[predecessors[edge]] + 1
                step[begin] = weights[edge]
                earliest = min(earliest, begin)
            total_into = 0.0
            for begin in range(earliest, end):
                total_into += step[begin]
                step[begin] = 0.0
                cross[begin] += total_into
            latest = end - 1
            for groups in range(num_groups, 1, -1):
                most, at = -1.0, 0
                for begin in range(begins[groups, end - 1], latest + 1):
                    total = cut[groups - 1, begin] + cross[begin]
                    if total > most:
                        most, at = total, begin
                cut[groups, end], begins[groups, end] = most, at
                latest = at
        if cut[num_groups, size] > best_weight:
            best_weight, end = cut[num_groups, size], size
            for groups in range(num_groups, 0, -1):
                begin = begins[groups, end]
                for position in range(begin, end):
                    best_groups[order[position]] = groups - 1
                end = begin
    return best_weight, best_groups
