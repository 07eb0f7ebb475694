"""Iterations of jobs alone, at both ends of what time can be."""

import math
from dataclasses import replace

import numpy as np
import pytest

from policies.job import Job
from policies.model.alone import alone_s
from policies.model.routed_flows import RoutedFlows
from policies.task_graph import Computation, TaskGraph, Transfer
from tests.policies.builders import GBPS, make_job


def sends(size_bytes: float, compute_s: float) -> Job:
    graph = TaskGraph((Computation(compute_s), Transfer((0,), (0,))))
    return replace(make_job("a", [(size_bytes, ((0,),))]), task_graph=graph)


def time_s(job: Job, latency_s: float = 0.0) -> float:
    routed = RoutedFlows.of([job], [[flow.hashed_path for flow in job.flows]], np.array([GBPS]))
    alike = np.zeros(1, dtype=np.int64)
    return alone_s(job, routed, alike, alike, latency_s)


def test_an_iteration_may_be_as_short_as_a_microsecond() -> None:
    assert time_s(sends(125.0, 1e-6)) == pytest.approx(2e-6)


def test_one_that_lasts_for_months_counts_as_endless() -> None:
    assert time_s(sends(1e18, 1.0)) == math.inf


def test_what_is_on_its_way_takes_its_time() -> None:
    assert time_s(sends(GBPS / 8, 1.0), latency_s=0.25) == pytest.approx(2.25)
