"""A cable is cut in the middle of a run: only what crosses it waits until it is back."""

import asyncio
from typing import Any

import pytest

from experiments.scenarios.emulated import run_on_emulator
from experiments.scenarios.results import RunResult
from experiments.scenarios.simulated import run_on_simulator
from tests.integration.iterations import iteration_begins_s
from workloads.scenario import Scenario


def _cut(events: tuple[dict[str, Any], ...]) -> Scenario:
    workload = {"type": "phases", "compute_s": 0.2, "comm_start": 0.5, "bytes": 12.5e6, "pattern": "ring"}
    job = {"gpus_per_host": 1, "iterations": 8, "workload": workload}
    document = {
        "name": "cut",
        "topology": {"kind": "star", "hosts": 4, "gpus_per_host": 1, "host_link_gbps": 1},
        "jobs": [job | {"name": "cut off", "hosts": ["h0", "h1"]}, job | {"name": "beside", "hosts": ["h2", "h3"]}],
        "events": events,
    }
    return Scenario.model_validate(document)


def _emulate(scenario: Scenario) -> RunResult:
    return asyncio.run(run_on_emulator(scenario, "crux", on_progress=lambda *_: None))


def test_a_job_waits_for_its_cable_and_is_then_as_fast_as_before() -> None:
    cut = {"at_s": 0.45, "link": ["t0", "h0"], "state": "down"}, {"at_s": 1.0, "link": ["h0", "t0"], "state": "up"}
    cut_off, beside = map(iteration_begins_s, _emulate(_cut(cut)).jobs)
    assert beside == pytest.approx([0.2 * number for number in range(8)], abs=0.02)
    assert cut_off[:3] == pytest.approx([0.0, 0.2, 0.4], abs=0.02)
    # The transfer begins at 0.5 and is tried again every 0.067 s, first with success at 1.037.
    assert cut_off[3] == pytest.approx(1.137, abs=0.005)
    assert cut_off[3:] == pytest.approx([cut_off[3] + 0.2 * number for number in range(5)], abs=0.02)


def test_the_simulator_has_the_same_times_where_a_cable_is_cut_in_the_middle_of_a_transfer() -> None:
    """Half of the third transfer is over at the cut; senders retransmit every 0.067 s, the fourth time at 0.818 s."""
    cut = {"at_s": 0.55, "link": ["t0", "h0"], "state": "down"}, {"at_s": 0.8, "link": ["t0", "h0"], "state": "up"}
    emulated = _emulate(_cut(cut))
    simulated = run_on_simulator(_cut(cut), "crux", on_progress=lambda *_: None)
    assert simulated.events == emulated.events != ()
    for fluid, packets in zip(simulated.jobs, emulated.jobs, strict=True):
        assert iteration_begins_s(fluid) == pytest.approx(iteration_begins_s(packets), abs=0.002)
    assert iteration_begins_s(simulated.jobs[0])[3] == pytest.approx(0.8684, abs=1e-4)
