"""A run applies the time shifts of directives: under CASSINI jobs that would always meet alternate on their link."""

import asyncio
from functools import cache

import pytest

from experiments.scenarios.emulated import run_on_emulator
from experiments.scenarios.results import RunResult
from workloads.scenario import Scenario

_ITERATIONS = 12
# Two jobs that compute for 1 s, then use the whole link for 1 s.
_SCENARIO = {
    "name": "two that meet",
    "topology": {
        "kind": "dumbbell",
        "hosts_per_side": 2,
        "gpus_per_host": 1,
        "host_link_gbps": 4,
        "bottleneck_gbps": 1,
    },
    "jobs": [
        {
            "name": name,
            "hosts": [source, destination],
            "gpus_per_host": 1,
            "iterations": _ITERATIONS,
            "workload": {
                "type": "phases",
                "compute_s": 1.0,
                "comm_start": 1.0,
                "flows": [{"source": source, "destination": destination, "bytes": 0.125e9}],
            },
        }
        for name, source, destination in (("first", "h0", "h2"), ("second", "h1", "h3"))
    ],
}


@cache
def _run(policy: str) -> RunResult:
    scenario = Scenario.model_validate(_SCENARIO)
    return asyncio.run(run_on_emulator(scenario, policy, on_progress=lambda _now_s, _end_s: None))


def _begins_s(result: RunResult) -> list[list[float]]:
    return [[interval.start_s for interval in job.computing] for job in result.jobs]


def test_jobs_without_shifts_meet_in_every_iteration() -> None:
    """Iterations take 1 s of computation and 2 s of half a link."""
    both = [pytest.approx(3.0 * number, rel=0.01) for number in range(_ITERATIONS)]
    assert _begins_s(_run("ecmp")) == [both, both]


def test_jobs_with_shifts_take_turns_from_their_second_iteration_on() -> None:
    """First iterations end at 3 s, a beat of the second job with shift 1 s; the first job waits for its own at 4 s."""
    first, second = _begins_s(_run("cassini"))
    assert first == pytest.approx([0.0, *(2.0 + 2.0 * number for number in range(1, _ITERATIONS))], abs=0.1)
    assert second == pytest.approx([0.0, *(1.0 + 2.0 * number for number in range(1, _ITERATIONS))], abs=0.1)


def test_alternating_jobs_are_as_fast_as_isolated_ones() -> None:
    waiting, taking_turns = _run("ecmp"), _run("cassini")
    assert waiting.gpu_utilisation == pytest.approx(1 / 3, abs=0.005)
    # Of 2 s each, but for the first one of 3 s and the wait.
    assert taking_turns.gpu_utilisation == pytest.approx(1 / 2, abs=0.03)
