import math
from dataclasses import replace

import numpy as np
import pytest
from scipy.sparse import csr_array

from policies.baselines.varys import bottleneck_times, sebf, varys
from policies.coflows import JobWeight
from policies.snapshot import Snapshot
from tests.policies.builders import GBPS, make_job, make_links


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
