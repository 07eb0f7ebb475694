"""Exact maximum K-cuts of small graphs, slow and simple, with which the policies' cuts are compared.

Every edge leads from a lower to a higher node number; ``weights[i, j]`` is NaN where there is no edge.
"""

from collections.abc import Iterator

import numpy as np
import numpy.typing as npt
from scipy.optimize import LinearConstraint, milp
from scipy.sparse import coo_array, csr_array

FloatArray = npt.NDArray[np.float64]


def edges_of(weights: FloatArray) -> csr_array:
    """Return the graph in the form that ``max_k_cut`` takes."""
    rows, columns = np.nonzero(~np.isnan(weights))
    return csr_array(coo_array((weights[rows, columns], (rows, columns)), shape=weights.shape))


def weight_cut(weights: FloatArray, groups: npt.NDArray[np.int64]) -> float:
    """Return the weight of the edges between groups.

    Raises:
        ValueError: An edge leads to an earlier group.
    """
    rows, columns = np.nonzero(~np.isnan(weights))
    if (groups[rows] > groups[columns]).any():
        raise ValueError("an edge leads to an earlier group")
    return float(weights[rows, columns][groups[rows] < groups[columns]].sum())


def enumerated_k_cut(weights: FloatArray, num_groups: int) -> float:
    """Return the weight of the largest cut, by enumerating all valid ones."""
    return max(_cuts(weights, num_groups, []))


def _cuts(weights: FloatArray, num_groups: int, groups: list[int]) -> Iterator[float]:
    """Yield the weights of all valid cuts that begin with these groups; a node's edges count when it is placed."""
    node = len(groups)
    if node == len(weights):
        yield 0.0
        return
    into = [(group, weight) for group, weight in zip(groups, weights[:node, node].tolist(), strict=True)]
    into = [(group, weight) for group, weight in into if weight == weight]
    for group in range(max((before for before, _ in into), default=0), num_groups):
        here = sum(weight for before, weight in into if before < group)
        yield here + max(_cuts(weights, num_groups, [*groups, group]))


def milp_k_cut(weights: FloatArray, num_groups: int, limit_s: float) -> float:
    """Return an upper bound on the weight of a cut, which is exact where HiGHS ends within the limit.

    The binary variable ``below[v, k]`` says that node v lies in a group after the k-th. It ascends along edges and
    descends in k. An edge is cut by at most the number of k where its ends differ.

    Raises:
        RuntimeError: HiGHS found no bound.
    """
    size, steps = len(weights), num_groups - 1
    rows, columns = np.nonzero(~np.isnan(weights))
    num_edges = len(rows)
    entries: list[tuple[int, int, float]] = []
    lower: list[float] = []
    upper: list[float] = []

    def constrain(terms: list[tuple[int, float]], least: float, most: float) -> None:
        entries.extend((len(lower), column, factor) for column, factor in terms)
        lower.append(least)
        upper.append(most)

    for node in range(size):
        for step in range(steps - 1):
            constrain([(node * steps + step, 1.0), (node * steps + step + 1, -1.0)], 0, np.inf)
    for edge, (source, target) in enumerate(zip(rows.tolist(), columns.tolist(), strict=True)):
        differ = []
        for step in range(steps):
            pair = [(target * steps + step, 1.0), (source * steps + step, -1.0)]
            constrain(pair, 0, np.inf)
            differ += pair
        constrain([(size * steps + edge, 1.0), *((column, -factor) for column, factor in differ)], -np.inf, 0)
    values = np.concatenate((np.zeros(size * steps), -weights[rows, columns]))
    row, column, factor = zip(*entries, strict=True)
    matrix = coo_array((factor, (row, column)), shape=(len(lower), len(values))).tocsr()
    result = milp(
        values,
        constraints=LinearConstraint(matrix, lower, upper),
        bounds=(0, 1),
        integrality=np.concatenate((np.ones(size * steps), np.zeros(num_edges))),
        options={"time_limit": limit_s},
    )
    if result.mip_dual_bound is None:
        raise RuntimeError(f"HiGHS: {result.message}")
    return float(-result.mip_dual_bound)
