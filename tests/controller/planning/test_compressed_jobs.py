"""Jobs that compress, as policies see them."""

from dataclasses import replace

import pytest

from controller.planning.compressed_jobs import compressed_job
from policies.job import Job
from policies.task_graph import Computation, TaskGraph, Transfer
from policies.transfers import windows_s
from tests.policies.builders import GBPS, make_job, make_links

RATES_BPS = make_links(GBPS, 2 * GBPS).rates_bps
GRAPH = TaskGraph((Computation(0.4), Transfer((0, 1), (0,)), Computation(0.5, (0,)), Computation(0.1, (1, 2))))


def _job(graph: TaskGraph | None = GRAPH) -> Job:
    """A job of two flows of 25 MB on links of 1 and 2 Gbit/s, released after 0.4 s and needed 0.5 s later."""
    return replace(make_job("gpt", [(25e6, ((0,),)), (25e6, ((1,),))], comm_start=0.4), task_graph=graph)


def _window_s(job: Job) -> float:
    assert job.task_graph is not None
    (window_s,) = windows_s(job.task_graph).values()
    return window_s


def test_flows_send_what_was_told_in_proportion_and_the_rest_stays_known() -> None:
    job = compressed_job(_job(), {"all-reduce": 5_000_000}, RATES_BPS)
    assert [flow.size_bytes for flow in job.flows] == pytest.approx([2.5e6, 2.5e6])
    uncompressed = job.flow_groups[0].uncompressed
    assert uncompressed is not None
    assert (uncompressed.size_bytes, uncompressed.window_s, uncompressed.slack_s) == (50e6, *[pytest.approx(0.5)] * 2)


def test_what_is_left_ends_just_when_it_is_needed() -> None:
    job = compressed_job(_job(), {"all-reduce": 5_000_000}, RATES_BPS)
    assert _window_s(job) == pytest.approx(2.5e6 * 8 / GBPS)
    assert job.task_graph is not None
    assert job.task_graph.compute_s == pytest.approx(1.0)


@pytest.mark.parametrize("sent_bytes", [50_000_000, 60_000_000])
def test_who_sends_all_keeps_its_slack(sent_bytes: int) -> None:
    assert compressed_job(_job(), {"all-reduce": sent_bytes}, RATES_BPS).task_graph == GRAPH


def test_what_takes_longer_than_its_window_is_released_as_before() -> None:
    job = compressed_job(_job(), {"all-reduce": 49_000_000}, RATES_BPS * 0.1)
    assert job.task_graph == GRAPH


def test_a_job_without_a_graph_sends_less_as_well() -> None:
    job = compressed_job(_job(None), {"all-reduce": 0}, RATES_BPS)
    assert job.task_graph is None
    assert sum(flow.size_bytes for flow in job.flows) == pytest.approx(1)


def test_other_groups_stay_the_same_objects() -> None:
    job = _job()
    assert compressed_job(job, {"another": 5}, RATES_BPS).flow_groups[0] is job.flow_groups[0]
