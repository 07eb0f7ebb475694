"""What elastic groups may count on: by hand, and whatever the jobs are."""

from collections.abc import Mapping, Sequence
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from policies.elastic import LEAST_SHARE, TOLERATED_LOSS, reliable_rates_bps
from policies.flows import FlowKey, Uncompressed
from policies.job import Job
from policies.plan import FlowPlan, JobPlan, Plan
from policies.snapshot import Snapshot
from tests.policies.builders import GBPS, make_job, make_links

MB = 1e6
ON_LINK: tuple[tuple[int, ...], ...] = ((0,),)


def elastic(job: Job, dense_bytes: float) -> Job:
    """The same job, whose flows would send so much together if it compressed nothing."""
    (group,) = job.flow_groups
    return replace(job, flow_groups=(replace(group, uncompressed=Uncompressed(dense_bytes, 0.0)),))


def compressing(name: str, dense_bytes: float, sent_share: float = 1.0, **profile: float) -> Job:
    """A job that computes for 1 s, and has the second half of it to send."""
    job = make_job(name, [(dense_bytes * sent_share, ON_LINK)], **({"comm_start": 0.5} | profile))
    return elastic(job, dense_bytes)


def rates(*jobs: Job, link_bps: Sequence[float] = (GBPS,), level: int = 0) -> Mapping[FlowKey, float]:
    snapshot = Snapshot(0.0, make_links(*link_bps), tuple(sorted(jobs, key=lambda job: job.name)))
    plans = tuple(
        JobPlan(job.name, rank, level if job.name == "gpt" else 0, None, None, None, None, "")
        for rank, job in enumerate(snapshot.jobs)
    )
    flows = {
        flow.key: FlowPlan(None, level if job.name == "gpt" else 0, 0) for job in snapshot.jobs for flow in job.flows
    }
    return reliable_rates_bps(snapshot, Plan("by hand", plans, flows))


def of(found: Mapping[FlowKey, float], job: str, flow: int = 0) -> float:
    return found[FlowKey(job, "all-reduce", flow)]


def test_where_nobody_compresses_nothing_is_told() -> None:
    assert rates(make_job("bert", [(10 * MB, ON_LINK)])) == {}


@pytest.mark.parametrize("sent_share", [1.0, 0.25, 1e-3])
def test_a_job_alone_may_count_on_the_whole_link_whatever_it_sends_now(sent_share: float) -> None:
    assert of(rates(compressing("gpt", 50 * MB, sent_share)), "gpt") == pytest.approx(GBPS)


@pytest.mark.parametrize("level", [0, 7])
def test_others_wait_at_most_a_little_of_their_time(level: int) -> None:
    # bert needs the link for 0.4 s of each second. For 0.0375 of the time gpt may send: 0.4 x 0.0375 = 0.015.
    bert = make_job("bert", [(50 * MB, ON_LINK)], comm_start=0.0)
    found = rates(bert, compressing("gpt", 25 * MB, 0.1), level=level)
    assert of(found, "gpt") == pytest.approx(0.0375 * GBPS)
    assert len(found) == 1


def test_what_is_free_of_the_links_time_is_the_most_that_is_left() -> None:
    # One hundredth of the link's time: all of the time would do no harm, and 0.99 are free.
    bert = make_job("bert", [(1.25 * MB, ON_LINK)], comm_start=0.0)
    assert of(rates(bert, compressing("gpt", 25 * MB, 0.1)), "gpt") == pytest.approx(0.99 * GBPS)


def test_a_full_link_leaves_a_little() -> None:
    many = [make_job(f"bert{number}", [(125 * MB, ON_LINK)], comm_start=0.0) for number in range(4)]
    assert of(rates(*many, compressing("gpt", 25 * MB, 0.1)), "gpt") == pytest.approx(LEAST_SHARE * GBPS)


def test_two_that_compress_send_the_same_share_of_all() -> None:
    bert, gpt = compressing("bert", 300 * MB, 1e-3), compressing("gpt", 100 * MB, 1e-3)
    found = rates(bert, gpt)
    # Dense they would send 2.4 and 0.8 Gbit in a second of 1 Gbit/s.
    assert of(found, "bert") == pytest.approx(0.75 * GBPS)
    assert of(found, "gpt") == pytest.approx(0.25 * GBPS)


def test_what_one_cannot_have_the_other_gets() -> None:
    # Behind the shared link bert has one of 20 Mbit/s.
    bert = make_job("bert", [(0.5 * MB, ((0, 1),))], comm_start=0.0)
    gpt = make_job("gpt", [(0.5 * MB, ON_LINK)], comm_start=0.0)
    jobs = [elastic(job, 500 * MB) for job in (bert, gpt)]
    found = rates(*jobs, link_bps=(GBPS, GBPS / 50))
    assert of(found, "bert") == pytest.approx(GBPS / 50)
    assert of(found, "gpt") == pytest.approx(GBPS * 49 / 50)


def test_flows_of_a_group_end_together() -> None:
    job = make_job("gpt", [(10 * MB, ((0,),)), (40 * MB, ((1,),)), (0.0, ((1,),))], comm_start=0.5)
    found = rates(elastic(job, 50 * MB), link_bps=(GBPS, GBPS))
    assert of(found, "gpt", 1) == pytest.approx(GBPS)
    assert of(found, "gpt", 0) == pytest.approx(GBPS / 4)
    assert len(found) == 2  # what sends nothing has no rate


@given(
    st.lists(st.tuples(st.floats(1, 400), st.floats(0.001, 1)), min_size=1, max_size=4),
    st.lists(st.floats(0, 200), max_size=3),
)
def test_all_together_stay_below_what_others_hardly_notice(
    elastics: list[tuple[float, float]], others: list[float]
) -> None:
    jobs = [compressing(f"e{number}", size * MB, share) for number, (size, share) in enumerate(elastics)]
    fixed = [make_job(f"f{number}", [(size * MB, ON_LINK)], comm_start=0.0) for number, size in enumerate(others)]
    found = rates(*jobs, *fixed)
    used = sum(s / max(1.0, s) for s in (size * MB * 8 / GBPS for size in others))
    harmless = max(LEAST_SHARE, min(1 - used, TOLERATED_LOSS / used if used else 1.0))
    mean = 0.0
    for (size, share), job in zip(elastics, jobs, strict=True):
        rate_bps = of(found, job.name)
        assert 0 < rate_bps <= GBPS * (1 + 1e-9)
        iteration_s = 0.5 + max(0.5, size * share * MB * 8 / GBPS)
        # It sends no more than all.
        mean += min(rate_bps, size * MB * 8 / iteration_s)
    if len(jobs) == 1:
        assert mean <= GBPS * harmless * (1 + 1e-6)
