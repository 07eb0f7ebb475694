"""Cables, switches and hosts that fail in a run: what plain ECMP would deliver is delivered, and plans move flows."""

import asyncio
from typing import Any

import pytest

from controller.policy.policy_name import PolicyName
from controller.run.emulated import run_on_emulator
from controller.run.results import RunResult
from tests.integration.iterations import iteration_begins_s
from workloads.scenario import Scenario


def _run(policy: PolicyName, *events: dict[str, Any], iterations: int = 10, **more: Any) -> RunResult:
    """Two jobs across three aggregation switches, one cable each: there is no other way behind the first switch."""
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


@pytest.mark.parametrize("policy", [PolicyName.ECMP, PolicyName.CRUX])
@pytest.mark.parametrize("agg", ["a0", "a1", "a2"])
def test_a_cable_behind_the_first_switch_stops_nobody(policy: PolicyName, agg: str) -> None:
    """Jobs' flows and their acknowledgements, which no rule leads, hash onto each of the switches."""
    cut = _event(0.33, "down", link=["t1", agg]), _event(50.0, "up", link=["t1", agg])
    for job in _run(policy, *cut).jobs:
        begins_s = iteration_begins_s(job)
        assert len(begins_s) == 10
        # Undisturbed it takes a second; senders try again 0.2 s after a loss, packet by packet at first.
        assert begins_s[-1] < 5.0
