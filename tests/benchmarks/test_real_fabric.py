"""Figures of real hosts are held against their budgets, and kills are drawn so that something is left to check."""

import random

import pytest

from benchmarks.budgets import budget_rows
from benchmarks.real_fabric import BUDGETS
from benchmarks.real_hosts.fault_rounds import drawn, scenario_of_faults
from benchmarks.real_hosts.run_processes import Part


@pytest.mark.parametrize(
    ("figure", "value", "verdict"),
    [
        ("packets_per_s", 250_000, "reached"),
        ("packets_per_s", 249_999, "missed"),
        ("low_share", 0.05, "reached"),
        ("low_share", 0.051, "missed"),
        ("virtual_time_slowdown", None, "not measured"),
    ],
)
def test_a_figure_reaches_its_budget_or_misses_it(figure: str, value: float | None, verdict: str) -> None:
    (row,) = budget_rows(BUDGETS, {figure: value, "seed": 1})
    assert (row["figure"], row["value"], row["verdict"]) == (figure, value, verdict)


def test_as_many_kills_are_drawn_as_asked_for_and_a_run_is_killed_last() -> None:
    runs = list(drawn(50, random.Random(1)))
    assert sum(map(len, runs)) == 50
    assert {part for parts in runs for part in parts} == set(Part)
    assert all(Part.RUN not in parts[:-1] for parts in runs)
    assert all(parts.count(Part.RANK) < len(scenario_of_faults().jobs) for parts in runs)
