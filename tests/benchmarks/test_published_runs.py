"""Published training runs: the formulas, and the rows that take no time to build."""

import pytest

from benchmarks.published_runs import FITTED, MEGATRON, fitted_efficiency, iteration_s, time_errors


def test_iteration_times_are_those_of_the_paper() -> None:
    """Section 5.1: 3,072 GPUs at 163 TFLOP/s train 450e9 tokens in 84 days."""
    trillion = MEGATRON[-1]
    days = trillion.iteration_s * 450e9 / (trillion.batch * 2048) / 86_400
    assert days == pytest.approx(84, rel=0.02)


def test_the_fitted_row_is_met_and_larger_ones_are_near() -> None:
    predicted = {run.name: iteration_s(run, fitted_efficiency()) / run.iteration_s for run in MEGATRON[2:6]}
    assert predicted[FITTED] == pytest.approx(1, rel=1e-6)
    assert all(abs(ratio - 1) < 0.05 for ratio in predicted.values()), predicted


def test_errors_leave_out_the_fitted_row() -> None:
    rows = [{"model": FITTED, "error": 9.0}, {"model": "a", "error": -0.2}, {"model": "b", "error": 0.1}]
    assert time_errors([*rows, {"model": "c", "error": 0.0}]) == (0.1, 0.2)
