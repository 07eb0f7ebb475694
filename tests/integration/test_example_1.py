"""Example 1 of Crux (section 3, Figure 11), from registrations through controller and rules to queues."""

import asyncio
import json

import pytest

from experiments.scenarios.emulated import run_on_emulator
from experiments.scenarios.results import RunResult, run_object
from workloads.loading import SHIPPED_SCENARIOS, load_scenario


def _run(name: str, policy: str = "crux") -> RunResult:
    scenario = load_scenario(SHIPPED_SCENARIOS / f"{name}.yaml")
    return asyncio.run(run_on_emulator(scenario, policy, on_progress=lambda _now_s, _end_s: None))


@pytest.fixture(scope="module")
def smaller_first() -> RunResult:
    return _run("crux-example-1")


def test_crux_lets_the_smaller_job_go_first(smaller_first: RunResult) -> None:
    assert smaller_first.gpu_utilisation == pytest.approx(10 / 24, abs=0.008)


def test_the_correction_factor_is_three_halves(smaller_first: RunResult) -> None:
    factors = {job.name: job.correction_factor for job in smaller_first.jobs}
    assert factors == {"job-1": 1.0, "job-2": pytest.approx(1.5)}


def test_the_order_reversed_wastes_a_period_in_twenty_four() -> None:
    assert _run("crux-example-1-reversed").gpu_utilisation == pytest.approx(9 / 24, abs=0.008)


def test_without_scheduling_no_rule_is_written_and_both_jobs_suffer() -> None:
    result = _run("crux-example-1", "ecmp")
    assert result.num_rules == 0
    assert all(job.iteration_time_s > 1.2 * job.ideal_iteration_time_s for job in result.jobs if job.iteration_time_s)


def test_sincronia_lets_the_smaller_job_go_first_too() -> None:
    result = _run("crux-example-1", "sincronia")
    assert result.gpu_utilisation == pytest.approx(10 / 24, abs=0.008)
    assert result.num_rules == 2


def test_the_same_seed_gives_the_same_bytes_twice(smaller_first: RunResult) -> None:
    again = _run("crux-example-1")
    assert json.dumps(run_object(again)) == json.dumps(run_object(smaller_first))
    assert (again.loads, again.jobs, again.packet_hops) == (
        smaller_first.loads,
        smaller_first.jobs,
        smaller_first.packet_hops,
    )
