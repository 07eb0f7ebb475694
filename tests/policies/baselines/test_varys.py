import math
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.sparse import csr_array

from policies.baselines.varys import bottleneck_times, sebf, varys
from policies.coflows import JobWeight
from policies.job import Job
from policies.snapshot import Snapshot
from tests.policies.builders import GBPS, make_job, make_links
from topologies.fabric import Path


def test_the_bottleneck_decides_not_the_sum() -> None:
    spread = make_job("spread", [(2e9, ((0,),)), (2e9, ((1,),)), (2e9, ((2,),))])
    narrow = make_job("narrow", [(3e9, ((0,),))])
    plan = varys(Snapshot(0.0, make_links(GBPS, GBPS, GBPS), (narrow, spread)))
    assert [(job.name, job.level) for job in plan.jobs] == [("spread", 7), ("narrow", 6)]
    assert "16 s" in plan.jobs[0].reason


def test_a_slow_link_is_a_bottleneck() -> None:
    jobs = make_job("a", [(1e9, ((0,),))]), make_job("b", [(2e9, ((1,),))])
    assert [job.name for job in varys(Snapshot(0.0, make_links(GBPS, 4 * GBPS), jobs)).jobs] == ["b", "a"]


def test_gpus_as_weight() -> None:
    small = make_job("small", [(1e9, ((0,),))])
    large = replace(make_job("large", [(3e9, ((0,),))]), gpus=4)
    snapshot = Snapshot(0.0, make_links(GBPS), (large, small))
    assert [job.name for job in varys(snapshot).jobs] == ["small", "large"]
    assert [job.name for job in varys(snapshot, JobWeight.GPUS).jobs] == ["large", "small"]


def test_coflows_by_bottleneck() -> None:
    times = bottleneck_times(csr_array(np.array([[1.0, 5.0], [0.0, 0.0], [2.0, 2.0], [2.0, 0.0]])))
    assert times.tolist() == [5.0, 0.0, 2.0, 2.0]
    assert sebf(times, np.ones(4)).tolist() == [1, 2, 3, 0]
    assert sebf(times, np.array([10.0, 1.0, 0.0, 1.0])).tolist() == [1, 0, 3, 2]


@pytest.mark.parametrize("bad", [-1.0, math.nan])
def test_bad_numbers_name_the_coflow(bad: float) -> None:
    with pytest.raises(ValueError, match="coflow 1: its weight"):
        sebf(np.ones(2), np.array([1.0, bad]))
    with pytest.raises(ValueError, match="coflow 0: its bottleneck time"):
        sebf(np.array([bad, 1.0]), np.ones(2))


def test_weighed_times_that_round_alike_are_told_apart() -> None:
    """(1 + e)/(1 + 3 e) is more than 1/(1 + 2 e), and both round to the same float, where e is a float's precision."""
    times, weights = np.array([1.0 + 2.0**-52, 1.0]), np.array([1.0 + 3 * 2.0**-52, 1.0 + 2.0**-51])
    exact = [Fraction(time) / Fraction(weight) for time, weight in zip(times, weights, strict=True)]
    assert times[0] / weights[0] == times[1] / weights[1]
    assert exact[1] < exact[0]
    assert sebf(times, weights).tolist() == [1, 0]


def test_sizes_that_sum_alike_tie_however_their_sums_round() -> None:
    """In floats 0.1 + 0.2 + 0.3 is more than 0.3 + 0.2 + 0.1."""
    sizes = [0.1, 0.2, 0.3]
    up = make_job("a", [(size_bytes * 2**40, ((0,),)) for size_bytes in sizes])
    down = make_job("b", [(size_bytes * 2**40, ((0,),)) for size_bytes in reversed(sizes)])
    assert sum(sizes) > sum(reversed(sizes))
    assert [job.name for job in varys(Snapshot(0.0, make_links(GBPS), (down, up))).jobs] == ["a", "b"]


def test_sizes_that_differ_by_less_than_rounding_leaves_do_not_tie() -> None:
    many = make_job("a", [(2.0**53, ((0,),)), (1.0, ((0,),))])
    one = make_job("b", [(2.0**53, ((0,),))])
    assert [job.name for job in varys(Snapshot(0.0, make_links(GBPS), (many, one))).jobs] == ["b", "a"]


SIZES = st.sampled_from([0.1, 0.2, 0.3]).map(lambda size: size * 2**30)
PATHS = st.sampled_from([(0,), (0, 1)])
DRAWN_JOBS = st.lists(
    st.tuples(st.lists(st.tuples(SIZES, PATHS), min_size=3, max_size=4), st.integers(1, 3)), min_size=2, max_size=6
)


@given(DRAWN_JOBS, st.permutations([1e9, 3e9]), st.sampled_from(JobWeight))
def test_agrees_with_rational_numbers(
    drawn: list[tuple[list[tuple[float, Path]], int]], rates_bps: list[float], weight: JobWeight
) -> None:
    jobs = [
        replace(make_job(f"job-{number}", [(size_bytes, (path,)) for size_bytes, path in flows]), gpus=gpus)
        for number, (flows, gpus) in enumerate(drawn)
    ]

    def exact(job: Job) -> Fraction:
        seconds = [
            sum(Fraction(flow.size_bytes) for flow in job.flows if link in flow.hashed_path) * 8 / Fraction(rate_bps)
            for link, rate_bps in enumerate(rates_bps)
        ]
        return max(seconds) / (job.gpus if weight is JobWeight.GPUS else 1)

    plan = varys(Snapshot(0.0, make_links(*rates_bps), tuple(jobs)), weight)
    assert [job.name for job in plan.jobs] == [job.name for job in sorted(jobs, key=exact)]
