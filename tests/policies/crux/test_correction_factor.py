"""k against the two worked examples of Crux, section 4.2, and against a second-by-second simulation."""

import math
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from policies.crux.correction_factor import GainOptions, correction_factor, correction_factors, factor_of_gains
from policies.crux.shared_link import Cycles, usage
from policies.intensity import Iteration


@dataclass
class SteppedJob:
    """A job with times in whole seconds, advanced one second at a time."""

    compute_s: int
    ready_s: int
    comm_s: int
    phase_s: int = 0

    def __post_init__(self) -> None:
        self.computed = min(self.phase_s, self.compute_s)
        self.sent = min(max(self.phase_s - self.ready_s, 0), self.comm_s)
        self.busy_s = self.carried_s = 0

    @property
    def iteration(self) -> Iteration:
        return Iteration(self.compute_s, self.ready_s / self.compute_s if self.compute_s else 0.0, self.comm_s)

    def step(self, link_is_free: bool) -> bool:
        """Advance one second; whether the job used the link."""
        if self.computed == self.compute_s and self.sent == self.comm_s:
            self.computed = self.sent = 0
        uses_link = link_is_free and self.computed >= self.ready_s and self.sent < self.comm_s
        if self.computed < self.compute_s:
            self.computed += 1
            self.busy_s += 1
        if uses_link:
            self.sent += 1
            self.carried_s += 1
        return uses_link


def step_through(first: SteppedJob, second: SteppedJob, horizon_s: int) -> None:
    for _ in range(horizon_s):
        second.step(link_is_free=not first.step(link_is_free=True))


def used(first: SteppedJob, second: SteppedJob, horizon_s: float) -> list[tuple[float, float]]:
    """Seconds on the link and seconds of computation, of the first job and of the second."""
    one, other = Cycles.of([first.iteration]), Cycles.of([second.iteration])
    phase, other_phase = (np.array([[round(job.phase_s * 1e9)]]) for job in (first, second))
    urgent = usage(one, phase, None, phase, horizon_s)
    behind = usage(other, other_phase, one, phase, horizon_s)
    return [(side.carried_s.item(), side.computed_s.item()) for side in (urgent, behind)]


def example_1() -> tuple[SteppedJob, SteppedJob]:
    """Both jobs have just computed, so that communication comes first."""
    return SteppedJob(2, 2, 2, phase_s=2), SteppedJob(1, 1, 1, phase_s=1)


def example_2() -> tuple[SteppedJob, SteppedJob]:
    """Job 1 starts to compute; job 2 is half way through its computation and starts to communicate."""
    return SteppedJob(4, 2, 1, phase_s=0), SteppedJob(2, 1, 3, phase_s=1)


def test_example_1_in_its_own_phase() -> None:
    """Figure 11: 10 GPUs each, 37.5 % with job 1 first and 41.7 % with job 2; k of job 2 is 3/2."""
    job_1, job_2 = example_1()
    (carried_1, computed_1), (carried_2, computed_2) = used(job_1, job_2, 12)
    assert (carried_1, carried_2) == (6.0, 3.0)
    assert (computed_1 + computed_2) / 24 == 0.375
    (carried_2, computed_2), (carried_1, computed_1) = used(job_2, job_1, 12)
    assert (carried_1, carried_2) == (4.0, 6.0)
    assert (computed_1 + computed_2) / 24 == 10 / 24
    assert correction_factor(job_2.iteration, job_1.iteration, 12, [(1, 2)]) == pytest.approx(1.5, rel=1e-12)


def test_example_1_in_the_long_run() -> None:
    job_1, job_2 = (job.iteration for job in example_1())
    assert correction_factor(job_2, job_1) == pytest.approx(1.5, rel=1e-12)
    assert correction_factors([job_1, job_2], job_1) == pytest.approx([1.0, 1.5])
    assert correction_factors([job_1, job_2], job_2) == pytest.approx([2 / 3, 1.0])


def test_example_2_in_its_own_phase() -> None:
    """Figure 12: of 12 s job 2's GPUs idle 7 with job 1 first and 6 with job 2; job 1 loses nothing either way."""
    job_1, job_2 = example_2()
    (carried_1, computed_1), (carried_2, computed_2) = used(job_1, job_2, 12)
    assert (carried_1, carried_2) == (3.0, 7.0)
    assert (12 - computed_1, 12 - computed_2) == (0.0, 7.0)
    (carried_2, computed_2), (carried_1, computed_1) = used(job_2, job_1, 12)
    assert (carried_1, carried_2) == (3.0, 9.0)
    assert (12 - computed_1, 12 - computed_2) == (0.0, 6.0)
    assert correction_factor(job_2.iteration, job_1.iteration, 12, [(1, 0)]) == 8.0


def test_example_2_costs_nothing_in_the_long_run() -> None:
    job_1, job_2 = (job.iteration for job in example_2())
    assert correction_factors([job_2], job_1) == [1.0]


@st.composite
def stepped_jobs(draw: st.DrawFn) -> SteppedJob:
    compute_s, comm_s = draw(st.integers(0, 7)), draw(st.integers(1, 7))
    ready_s = draw(st.integers(0, compute_s))
    phase_s = draw(st.integers(0, max(compute_s, ready_s + comm_s) - 1))
    return SteppedJob(compute_s, ready_s, comm_s, phase_s)


@given(stepped_jobs(), stepped_jobs(), st.integers(1, 90))
def test_seconds_agree_with_stepping(first: SteppedJob, second: SteppedJob, horizon_s: int) -> None:
    seconds = used(first, second, horizon_s)
    step_through(first, second, horizon_s)
    assert seconds == [(job.carried_s, job.busy_s) for job in (first, second)]


@given(stepped_jobs(), stepped_jobs(), st.integers(1, 90), st.data())
def test_gains_over_a_horizon_agree_with_stepping(
    job: SteppedJob, reference: SteppedJob, horizon_s: int, data: st.DataObject
) -> None:
    gain = reference_gain = 0
    phases = data.draw(
        st.lists(
            st.tuples(*(st.integers(0, int(one.iteration.duration_s) - 1) for one in (job, reference))),
            min_size=1,
            max_size=3,
        )
    )
    for phase_s, reference_phase_s in phases:
        for sign in (1, -1):
            tried = replace(job, phase_s=phase_s), replace(reference, phase_s=reference_phase_s)
            step_through(*tried[::sign], horizon_s)
            gain += sign * tried[0].carried_s
            reference_gain -= sign * tried[1].carried_s
    share = horizon_s * len(phases)
    assert correction_factor(job.iteration, reference.iteration, horizon_s, phases) == pytest.approx(
        factor_of_gains(gain / share, reference_gain / share)
    )


@st.composite
def jobs_of_16_seconds(draw: st.DrawFn) -> SteppedJob:
    """The default's 16 phases fall on whole seconds of their iteration."""
    ready_s = draw(st.integers(0, 15))
    ends_with_computation = draw(st.booleans())
    compute_s = 16 if ends_with_computation else draw(st.integers(ready_s, 16))
    comm_s = draw(st.integers(1, 16 - ready_s)) if ends_with_computation else 16 - ready_s
    return SteppedJob(compute_s, ready_s, comm_s)


def share_behind(urgent: SteppedJob, behind: SteppedJob, begin_s: int, end_s: int) -> float:
    """Share of time for which the link carries a job, from its first iteration begun at one time to that at another."""
    starts = []
    for now_s in range(end_s + 20 * 16):
        if now_s > 0 and behind.computed == behind.compute_s and behind.sent == behind.comm_s and now_s >= begin_s:
            starts.append((now_s, behind.carried_s))
            if now_s >= end_s:
                break
        step_through(urgent, behind, 1)
    if not starts or starts[-1][0] < end_s:
        return 0.0  # it never ends another iteration
    (first_s, carried_before_s), (last_s, carried_s) = starts[0], starts[-1]
    return (carried_s - carried_before_s) / max(last_s - first_s, 1)


@settings(max_examples=30)
@given(jobs_of_16_seconds(), stepped_jobs())
def test_long_run_factor_agrees_with_stepping(job: SteppedJob, reference: SteppedJob) -> None:
    """16 phases, the iterations begun in the time of 50 of the longer job after 10."""
    longer_s = max(16, int(reference.iteration.duration_s))
    span = 10 * longer_s, 60 * longer_s
    gain = job.comm_s / 16
    reference_gain = reference.comm_s / reference.iteration.duration_s
    for phase_s in range(16):
        for is_first in (True, False):
            tried = replace(job, phase_s=phase_s), replace(reference, phase_s=0)
            if is_first:
                reference_gain -= share_behind(*tried, *span) / 16
            else:
                gain -= share_behind(*tried[::-1], *span) / 16
    factor = correction_factors([job.iteration], reference.iteration)[0]
    assert factor == pytest.approx(factor_of_gains(gain, reference_gain), rel=1e-6)


@given(stepped_jobs(), stepped_jobs(), st.sampled_from([1e-3, 0.5, 1e3]))
def test_factor_has_no_unit(job: SteppedJob, reference: SteppedJob, scale: float) -> None:
    def scaled(iteration: Iteration) -> Iteration:
        return Iteration(iteration.compute_s * scale, iteration.comm_start, iteration.comm_s * scale)

    factor = correction_factors([job.iteration], reference.iteration)
    assert correction_factors([scaled(job.iteration)], scaled(reference.iteration)) == pytest.approx(factor, rel=1e-3)


def test_factor_is_clipped() -> None:
    assert factor_of_gains(0.5, 0.0) == 8.0
    assert factor_of_gains(0.5, 0.01) == 8.0
    assert factor_of_gains(0.0, 0.5) == 1 / 8


def test_factor_is_one_where_neither_order_costs_anything() -> None:
    assert factor_of_gains(0.0, 0.0) == 1.0
    assert factor_of_gains(0.0009, 0.0) == 1.0
    assert (factor_of_gains(0.001, 0.0), factor_of_gains(0.0, 0.001)) == (8.0, 1 / 8), "and not beyond 0.1 %"


def test_jobs_that_send_nothing_have_factor_one() -> None:
    silent, sending = Iteration(1.0, 1.0, 0.0), Iteration(1.0, 1.0, 1.0)
    assert correction_factors([silent, sending], silent) == [1.0, 1.0]
    assert correction_factors([silent], sending) == [1.0]
    assert correction_factors([], sending) == []


def test_job_that_never_frees_the_link_starves_the_other() -> None:
    greedy, other = Iteration(0.0, 0.0, 1.0), Iteration(1.0, 1.0, 1.0)
    assert used(SteppedJob(0, 0, 1), SteppedJob(1, 1, 1), 100.0) == [(100.0, 0.0), (0.0, 1.0)]
    # Whoever is urgent takes 1/2 from the other: all of its share, or half of the link.
    assert correction_factors([other], greedy) == pytest.approx([1.0])


def test_very_unlike_iterations_are_decided_too() -> None:
    """A nanosecond beside eleven days; the short job loses its half of the time that the long one sends."""
    short, long = Iteration(1e-9, 1.0, 1e-9), Iteration(1e6, 1.0, 1e6)
    assert correction_factors([short], long) == pytest.approx([(1 / 4) / (1 / 6)], rel=0.05)


def test_too_long_an_iteration_is_named() -> None:
    with pytest.raises(ValueError, match="longer than 1e\\+07 s"):
        correction_factors([Iteration(1e8, 1.0, 1.0)], Iteration(1.0, 1.0, 1.0))


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"horizon_s": 0.0}, "horizon_s must be positive"),
        ({"horizon_s": math.nan}, "horizon_s must be positive"),
        ({"phases": []}, "phases must not be empty"),
        ({"phases": [(0.0, 2.5)]}, "phases must lie within the iteration of 2 s, not 2.5"),
        ({"phases": [(math.nan, 0.0)]}, "phases must lie within"),
    ],
)
def test_senseless_questions_are_refused(arguments: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        correction_factor(Iteration(1.0, 1.0, 1.0), Iteration(1.0, 1.0, 1.0), **arguments)


def test_bounds_of_the_factor_are_options() -> None:
    job_1, job_2 = (job.iteration for job in example_1())
    assert correction_factor(job_2, job_1, options=GainOptions(largest_factor=1.25)) == 1.25
    assert correction_factor(job_2, job_1, options=GainOptions(negligible_gain=0.5)) == 1.0
