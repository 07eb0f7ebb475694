"""A cable that is cut in the middle of a run: what crosses it waits until it is whole again, and nothing else."""

import asyncio
from typing import Any

import pytest

from controller.policy.policy_name import PolicyName
from controller.run.emulated import run_on_emulator
from controller.run.results import RunResult
from tests.integration.iterations import iteration_begins_s
from workloads.scenario import Scenario


def _run(events: tuple[dict[str, Any], ...]) -> RunResult:
    workload = {"type": "phases", "compute_s": 0.2, "comm_start": 0.5, "bytes": 12.5e6, "pattern": "ring"}
    job = {"gpus_per_host": 1, "iterations": 8, "workload": workload}
    document = {
        "name": "cut",
        "topology": {"kind": "star", "hosts": 4, "gpus_per_host": 1, "host_link_gbps": 1},
        "jobs": [job | {"name": "cut off", "hosts": ["h0", "h1"]}, job | {"name": "beside", "hosts": ["h2", "h3"]}],
        "events": events,
    }
    return asyncio.run(run_on_emulator(Scenario.model_validate(document), PolicyName.CRUX, on_progress=lambda *_: None))


def test_a_job_waits_for_its_cable_and_is_then_as_fast_as_before() -> None:
    cut = {"at_s": 0.45, "link": ["t0", "h0"], "state": "down"}, {"at_s": 1.0, "link": ["h0", "t0"], "state": "up"}
    cut_off, beside = map(iteration_begins_s, _run(cut).jobs)
    assert beside == pytest.approx([0.2 * number for number in range(8)], abs=0.02)
    assert cut_off[:3] == pytest.approx([0.0, 0.2, 0.4], abs=0.02)
    # Senders try again after 0.2, 0.4, 0.8, ... s.
    assert 1.0 < cut_off[3] < 2.5
    assert cut_off[3:] == pytest.approx([cut_off[3] + 0.2 * number for number in range(5)], abs=0.02)
