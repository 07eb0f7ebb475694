"""Maximum K-cuts against all splits of an order, all cuts, and a bound by mixed-integer programming."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.sparse import csr_array

from benchmarks.optima import FloatArray, edges_of, enumerated_k_cut, milp_k_cut, weight_cut
from policies.crux.max_k_cut import default_num_orders, max_k_cut


@st.composite
def graphs(draw: st.DrawFn, min_size: int = 0, max_size: int = 9) -> FloatArray:
    """Coarse weights, so that ties are common, and edges that weigh nothing but are edges."""
    size = draw(st.integers(min_size, max_size))
    weights = np.full((size, size), np.nan)
    for source in range(size):
        for target in range(source + 1, size):
            if draw(st.booleans()):
                weights[source, target] = draw(st.integers(0, 5))
    return weights


@given(graphs(), st.integers(1, 9), st.integers())
def test_cuts_are_valid_and_weigh_what_they_say(weights: FloatArray, num_groups: int, seed: int) -> None:
    weight, groups = max_k_cut(edges_of(weights), num_groups, seed)
    assert weight == weight_cut(weights, groups)
    assert set(groups.tolist()) == set(range(len(set(groups.tolist()))))
    assert len(set(groups.tolist())) <= num_groups


def best_split(weights: FloatArray, num_groups: int) -> float:
    """The most that at most so many consecutive groups cut, by trying every beginning of every group."""
    size = len(weights)
    best = [0.0] * (size + 1)
    for _ in range(num_groups - 1):
        best = [
            max(best[begin] + np.nansum(weights[:begin, begin:end]) for begin in range(end + 1))
            for end in range(size + 1)
        ]
    return best[-1]


@settings(max_examples=50)
@given(graphs(min_size=1, max_size=14), st.integers(1, 15))
def test_a_graph_with_one_order_is_split_best(weights: FloatArray, num_groups: int) -> None:
    """The bounds on where groups begin lose nothing."""
    for node in range(len(weights) - 1):
        weights[node, node + 1] = np.nan_to_num(weights[node, node + 1])
    assert max_k_cut(edges_of(weights), num_groups, seed=1, num_orders=1)[0] == best_split(weights, num_groups)


def test_random_graphs_are_cut_nearly_best() -> None:
    random = np.random.default_rng(5)
    ratios = []
    for _ in range(150):
        size = random.integers(5, 11)
        is_edge = np.triu(random.random((size, size)) < random.uniform(0.1, 0.9), 1)
        weights = np.where(is_edge, random.uniform(1, 100, (size, size)), np.nan)
        if is_edge.any():
            ratios.append(max_k_cut(edges_of(weights), 3, seed=1)[0] / enumerated_k_cut(weights, 3))
    assert np.mean(ratios) >= 0.999
    assert min(ratios) >= 0.95


def test_twenty_nodes_are_cut_nearly_best() -> None:
    random = np.random.default_rng(6)
    ratios = []
    for _ in range(5):
        is_edge = np.triu(random.random((20, 20)) < random.uniform(0.1, 0.9), 1)
        weights = np.where(is_edge, random.uniform(1, 100, (20, 20)), np.nan)
        ratios.append(max_k_cut(edges_of(weights), 4, seed=1)[0] / milp_k_cut(weights, 4, limit_s=60))
    assert np.mean(ratios) >= 0.99


def test_many_nodes_get_fewer_orders() -> None:
    assert [default_num_orders(size) for size in (0, 1, 256, 300, 5000)] == [32, 32, 32, 23, 8]


def test_senseless_questions_are_refused() -> None:
    cycle = csr_array(np.array([[0.0, 1.0], [1.0, 0.0]]))
    with pytest.raises(ValueError, match="cycle"):
        max_k_cut(cycle, 2, seed=1)
    with pytest.raises(ValueError, match="num_groups and num_orders must be at least 1, not 0 and 32"):
        max_k_cut(edges_of(np.full((2, 2), np.nan)), 0, seed=1)
    with pytest.raises(ValueError, match="not 2 and 0"):
        max_k_cut(edges_of(np.full((2, 2), np.nan)), 2, seed=1, num_orders=0)
