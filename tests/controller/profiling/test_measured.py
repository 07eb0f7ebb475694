"""What measurements amount to, and when they hold no longer."""

from dataclasses import replace

import pytest

from controller.profiling.measured import Measured, has_drifted
from controller.profiling.rhythm import Rhythm
from policies.intensity import Iteration

KNOWN = Rhythm(iteration_bytes=1e9, period_s=1.0, gap_s=0.4, iterations=30, strength=0.9)


@pytest.mark.parametrize(
    ("period_s", "gap_s", "transfer_s"),
    [(1.53, 1.12, 0.41), (0.464, 0.1, 0.364), (1.0, 0.5, 0.5), (1.0, 0.02, 0.2), (1.0, 0.0, 1.0), (2.0, 1.99, 0.01)],
)
def test_a_profile_gives_the_period_that_was_measured(period_s: float, gap_s: float, transfer_s: float) -> None:
    rhythm = replace(KNOWN, period_s=period_s, gap_s=gap_s)
    profile = Measured(0.0, rhythm, transfer_s, ()).profile(gpus=16)
    iteration = Iteration(profile.compute_s, profile.comm_start, transfer_s)
    assert iteration.duration_s == pytest.approx(period_s, rel=0.01)
    assert period_s - transfer_s <= profile.compute_s + 1e-9
    assert profile.compute_s <= period_s
    assert profile.work == pytest.approx(16 * profile.compute_s)


def test_other_jobs_alone_make_no_drift() -> None:
    slower = replace(KNOWN, period_s=3.0, gap_s=0.1, iteration_bytes=1.05e9)
    assert not has_drifted(KNOWN, KNOWN, 0.2)
    assert not has_drifted(KNOWN, slower, 0.2)


@pytest.mark.parametrize(
    "now",
    [
        replace(KNOWN, iteration_bytes=1.3e9),
        replace(KNOWN, iteration_bytes=0.7e9),
        replace(KNOWN, period_s=0.7),
        replace(KNOWN, period_s=2.0, gap_s=0.7),
    ],
)
def test_what_other_jobs_cannot_cause_is_drift(now: Rhythm) -> None:
    assert has_drifted(KNOWN, now, 0.2)
    assert not has_drifted(KNOWN, now, 0.9)
