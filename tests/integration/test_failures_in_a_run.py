"""Cables, switches and hosts fail in a run: flows that plain ECMP would deliver arrive, and Plans move flows."""

import asyncio
import json
from typing import Any

import pytest

from experiments.scenarios.emulated import run_on_emulator
from experiments.scenarios.results import RunResult, run_object
from tests.integration.iterations import iteration_begins_s
from workloads.scenario import Scenario


def _run(policy: str, *events: dict[str, Any], iterations: int = 10, **more: Any) -> RunResult:
    """Run two jobs across three aggregation switches with one cable each: behind the first switch is no other path."""
    workload = {"type": "phases", "compute_s": 0.1, "comm_start": 0.5, "bytes": 5e6, "pattern": "ring"}
    job = {"gpus_per_host": 1, "iterations": iterations, "workload": workload}
    topology = {"kind": "clos", "tors": 2, "aggs": 3, "hosts_per_tor": 2, "gpus_per_host": 1}
    document = {
        "name": "failures",
        "topology": topology | {"host_link_gbps": 1, "uplink_gbps": 1},
        "jobs": [job | {"name": "one", "hosts": ["h0", "h2"]}, job | {"name": "other", "hosts": ["h1", "h3"]}],
        "events": events,
    }
    scenario = Scenario.model_validate(document | more)
    return asyncio.run(run_on_emulator(scenario, policy, on_progress=lambda *_: None))


def _event(at_s: float, state: str, **what: Any) -> dict[str, Any]:
    return {"at_s": at_s, "state": state} | what


@pytest.mark.parametrize("policy", ["ecmp", "crux"])
@pytest.mark.parametrize("agg", ["a0", "a1", "a2"])
def test_a_dead_cable_behind_the_first_switch_stops_no_job(policy: str, agg: str) -> None:
    """Jobs' flows, and their acknowledgements without rules, hash onto each of the switches."""
    cut = _event(0.37, "down", link=["t1", agg]), _event(50.0, "up", link=["t1", agg])
    for job in _run(policy, *cut).jobs:
        begins_s = iteration_begins_s(job)
        assert len(begins_s) == 10
        # Undisturbed the last begins at 0.9 or, under ecmp, a little later; senders try again 0.067 s after a loss.
        assert begins_s[-1] < 1.1


def test_a_host_that_dies_stops_only_its_job_and_counts_no_computation() -> None:
    outage = _event(0.34, "down", host="h2"), _event(2.34, "up", host="h2")
    result = _run("crux", *outage, probes=True)
    one, other = result.jobs
    assert iteration_begins_s(other)[-1] < 1.5
    begins_s = iteration_begins_s(one)
    assert len(begins_s) == 10
    # It stands still with 0.06 s of the computation to go that a transfer follows on; senders try again in 0.067 s.
    assert 2.34 < begins_s[4] < 2.55
    computing_s = sum(interval.end_s - interval.start_s for interval in one.computing)
    assert computing_s == pytest.approx(10 * 0.1)
    assert all(interval.end_s <= 0.34 or interval.start_s >= 2.34 for interval in one.computing)


def test_a_flapping_cable_is_avoided_and_runs_are_repeatable() -> None:
    """The controller avoids a0 after its third failure: flows stay where they are."""
    flaps = [
        _event(at_s, state, link=["a0", "t1"])
        for number in range(6)
        for at_s, state in ((0.3 + 0.2 * number, "down"), (0.4 + 0.2 * number, "up"))
    ]
    first, second = (json.dumps(run_object(_run("crux", *flaps, iterations=20))) for _ in range(2))
    assert first == second
    for job in json.loads(first)["jobs"]:
        assert job["jct_s"] < 20 * 0.1 + 3 * 0.1


def test_neighbours_avoid_a_dead_switch_by_their_ports() -> None:
    outage = _event(0.37, "down", switch="a1"), _event(40.0, "up", switch="a1")
    for job in _run("crux", *outage).jobs:
        assert iteration_begins_s(job)[-1] < 1.1


def test_a_controller_that_starts_learns_of_dead_links() -> None:
    """The cable goes down while there is no controller: the next one uses other paths."""
    events = (
        _event(0.3, "down", controller=0),
        _event(0.37, "down", link=["t1", "a0"]),
        _event(0.4, "up", controller=0),
        _event(50.0, "up", link=["t1", "a0"]),
    )
    # It serves from 0.7 s on.
    for job in _run("crux", *events, recovery_s=0.3).jobs:
        assert iteration_begins_s(job)[-1] < 0.9 + 0.7 - 0.37 + 0.1
