"""Jobs that share a star: alone as on a star of their own, and above others as if they were alone."""

from collections.abc import Sequence

import pytest

from experiments.compression.conditions import BPS_PER_MBPS, fixed
from experiments.compression.joint import drawn
from experiments.compression.methods import METHODS
from experiments.compression.sending import dense_plan
from experiments.compression.shared_star import Served, SharedStar, host_rates_bps
from experiments.compression.star import SLOW_HOSTS
from experiments.compression.timeline import Job, Plans, Step, planned, run
from hostlib.compression.agreement import Proposal
from tests.experiments.compression.test_timeline import FREE, RATE_MBPS, TWO

JOB = Job(TWO, 1.0, FREE)


def _dense() -> Plans:
    return planned(lambda _step, _steps, _buckets: dense_plan(TWO.buckets), 1, len(TWO.buckets))


def _ends_s(steps: Sequence[Step]) -> list[float]:
    return [step.end_s for step in steps]


def test_a_job_alone_is_as_on_a_star_of_its_own() -> None:
    star = SharedStar([JOB], [_dense()], (0.0,), RATE_MBPS * BPS_PER_MBPS)
    star.run(12.0)
    alone = run(JOB, METHODS["AllReduce"], fixed(RATE_MBPS), len(star.steps[0]))
    assert len(alone) > 5
    assert _ends_s(star.steps[0]) == pytest.approx(_ends_s(alone), abs=1e-9)


def test_the_upper_job_does_not_notice_the_lower_one() -> None:
    def observe(
        _number: int, _now_s: float, _step: Step, proposal: Proposal
    ) -> tuple[Proposal, Sequence[Served] | None]:
        return proposal, (Served(7, 0), Served(0, 1))

    star = SharedStar([JOB, JOB], [_dense(), _dense()], (0.0, 0.3), RATE_MBPS * BPS_PER_MBPS, observe)
    star.run(30.0)
    upper, lower = ([step.end_s - step.start_s for step in steps[2:]] for steps in star.steps)
    alone = run(JOB, METHODS["AllReduce"], fixed(RATE_MBPS), 1)[0].end_s
    assert upper == pytest.approx([alone] * len(upper), abs=1e-9)
    assert max(lower) > 1.05 * alone


def test_two_jobs_of_one_level_share_and_lose_alike() -> None:
    star = SharedStar([JOB, JOB], [_dense(), _dense()], (0.0, 0.0), RATE_MBPS * BPS_PER_MBPS)
    star.run(20.0)
    first, second = (_ends_s(steps) for steps in star.steps)
    assert first == pytest.approx(second, abs=1e-6)
    # All is sent at half the rate: the first bucket in 0.28 s, the last one in 1.4 s from the backward pass's end on.
    assert first[0] == pytest.approx(1.0 + 2 * 0.7, abs=0.01)


def test_no_other_link_is_slower_than_the_slow_ones() -> None:
    for slow_bps in (1e8, 1e11):
        rates_bps = host_rates_bps(slow_bps)
        assert all(rates_bps[host] == slow_bps for host in SLOW_HOSTS)
        assert min(rates_bps) == slow_bps


def test_draws_are_the_same_again() -> None:
    assert drawn(1, 3) == drawn(1, 3)
    assert len({drawn(1, number) for number in range(20)} | {drawn(2, number) for number in range(20)}) == 40
