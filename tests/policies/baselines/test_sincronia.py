import math
from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.sparse import csr_array

from policies.baselines.sincronia import bssi, sincronia
from policies.coflows import JobWeight
from policies.snapshot import Snapshot
from tests.policies.builders import GBPS, make_job, make_links
from tests.policies.coflow_benchmark import bytes_by_coflow_and_port, needs_the_benchmark


def plain_bssi(demands: Sequence[Sequence[float]], weights: Sequence[float]) -> list[int]:
    """Bottleneck, select, scale, iterate; everything summed up anew every time."""
    weights, left, backwards = list(weights), list(range(len(demands))), []
    idle = [coflow for coflow in left if not any(demands[coflow])]
    left = [coflow for coflow in left if any(demands[coflow])]
    while left:
        totals = [sum(demands[coflow][link] for coflow in left) for link in range(len(demands[0]))]
        bottleneck = totals.index(max(totals))
        there = {coflow: demands[coflow][bottleneck] for coflow in left if demands[coflow][bottleneck]}
        ratios = {coflow: weights[coflow] / demand for coflow, demand in there.items()}
        smallest = min(ratios.values())
        last = max(coflow for coflow, ratio in ratios.items() if ratio == smallest)
        for coflow in ratios:
            weights[coflow] = max(weights[coflow] - there[coflow] * smallest, 0.0)
        left.remove(last)
        backwards.append(last)
    return backwards[::-1] + idle


def test_bottleneck_select_scale_iterate() -> None:
    # Link 0 carries 9, so coflow 1 (1/6 a byte) goes last there; coflow 0 has weight 1/2 left, coflow 2 keeps 1. Link 1
    # then carries 7: coflow 2 has 1/4 a byte, coflow 0 1/6.
    demands = np.array([[3.0, 3.0], [6.0, 0.0], [0.0, 4.0]])
    assert bssi(csr_array(demands), np.ones(3)).tolist() == [2, 0, 1]


def test_weight_pulls_forward() -> None:
    demands = csr_array(np.array([[1.0], [2.0]]))
    assert bssi(demands, np.ones(2)).tolist() == [0, 1]
    assert bssi(demands, np.array([1.0, 3.0])).tolist() == [1, 0]


def test_on_one_link_it_is_smiths_rule() -> None:
    sizes, weights = np.array([5.0, 2.0, 8.0, 3.0]), np.array([1.0, 1.0, 4.0, 2.0])
    assert bssi(csr_array(sizes[:, None]), weights).tolist() == np.argsort(sizes / weights).tolist()


@given(
    st.integers(1, 4).flatmap(
        lambda num_links: st.lists(
            st.tuples(
                st.lists(st.sampled_from([0.0, 1.0, 3.0, 7.0, 49.0]), min_size=num_links, max_size=num_links),
                st.sampled_from([0.0, 0.1, 1.0, 5.0]),
            ),
            min_size=1,
            max_size=7,
        )
    )
)
def test_agrees_with_the_plain_version(coflows: list[tuple[list[float], float]]) -> None:
    demands, weights = [demands for demands, _ in coflows], [weight for _, weight in coflows]
    assert bssi(csr_array(np.array(demands)), np.array(weights)).tolist() == plain_bssi(demands, weights)


def test_a_link_whose_coflows_are_placed_counts_no_more_though_rounding_leaves_it_bytes() -> None:
    """0.4 + 0.5 + 0.7, taken away one after the other, leaves more than the other link carries."""
    demands = np.array([[0.4, 0.0], [0.5, 0.0], [0.7, 0.0], [0.0, 1e-20]])
    assert bssi(csr_array(demands), np.ones(4)).tolist() == [3, 0, 1, 2]


@pytest.mark.slow
@needs_the_benchmark
def test_agrees_with_the_plain_version_on_the_coflow_benchmark() -> None:
    demands = bytes_by_coflow_and_port()
    order = bssi(csr_array(demands), np.ones(len(demands)))
    assert order.tolist() == plain_bssi(demands.tolist(), [1.0] * len(demands))


@pytest.mark.parametrize("bad", [-1.0, math.nan, math.inf])
def test_bad_numbers_name_the_coflow(bad: float) -> None:
    with pytest.raises(ValueError, match="coflow 1: its weight"):
        bssi(csr_array(np.ones((2, 1))), np.array([1.0, bad]))
    with pytest.raises(ValueError, match="coflow 1: its demand"):
        bssi(csr_array(np.array([[1.0, 1.0], [1.0, bad]])), np.ones(2))


def test_jobs_in_its_order_with_a_level_each() -> None:
    sizes = {"a": 3e9, "b": 1e9, "c": 2e9}
    jobs = tuple(make_job(name, [(size_bytes, ((0,),))]) for name, size_bytes in sizes.items())
    plan = sincronia(Snapshot(0.0, make_links(GBPS), jobs, num_levels=2))
    assert [(job.name, job.level) for job in plan.jobs] == [("b", 1), ("c", 0), ("a", 0)]


def test_links_count_by_time_not_by_bytes() -> None:
    # The slow link is the bottleneck although it carries less; on it c takes longer than a.
    jobs = (
        make_job("a", [(1e9, ((0,),)), (9e9, ((1,),))]),
        make_job("b", [(1e9, ((1,),))]),
        make_job("c", [(2e9, ((0,),))]),
    )
    plan = sincronia(Snapshot(0.0, make_links(GBPS, 100 * GBPS), jobs))
    assert plan.jobs[-1].name == "c"


def test_gpus_as_weight() -> None:
    jobs = make_job("a", [(1e9, ((0,),))]), replace(make_job("b", [(3e9, ((0,),))]), gpus=4)
    snapshot = Snapshot(0.0, make_links(GBPS), jobs)
    assert [job.name for job in sincronia(snapshot).jobs] == ["a", "b"]
    assert [job.name for job in sincronia(snapshot, JobWeight.GPUS).jobs] == ["b", "a"]
