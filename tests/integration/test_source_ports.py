"""Steering by rules and by source ports gives flows the same paths; by source ports only levels need rules."""

import asyncio

import pytest

from experiments.scenarios.emulated import run_on_emulator
from experiments.scenarios.results import RunResult
from workloads.scenario import Scenario

_JOB = {"gpus_per_host": 8, "iterations": 6}
_SCENARIO = {
    "name": "two rings",
    "topology": {
        "kind": "clos",
        "tors": 2,
        "aggs": 2,
        "hosts_per_tor": 2,
        "host_link_gbps": 2,
        "uplink_gbps": 1,
        "uplinks_per_pair": 2,
        "nics_per_host": 2,
    },
    "jobs": [
        {
            "name": name,
            "hosts": hosts,
            "workload": {"type": "phases", "compute_s": 0.02, "comm_start": 0.5, "bytes": 4e6, "pattern": "ring"},
            **_JOB,
        }
        for name, hosts in (("vision", ["h0", "h2"]), ("language", ["h1", "h3"]))
    ],
}


def _run(steering: str) -> RunResult:
    scenario = Scenario.model_validate(_SCENARIO | {"steering": steering})
    return asyncio.run(run_on_emulator(scenario, "crux", on_progress=lambda _now_s, _end_s: None))


def test_source_ports_give_the_paths_of_rules() -> None:
    by_rule, by_port = _run("rule"), _run("source_port")
    assert sorted((flow.job, flow.path) for flow in by_port.flows) == sorted(
        (flow.job, flow.path) for flow in by_rule.flows
    )
    # One rule per flow, at its first switch, for its level.
    assert by_port.num_rules <= len(by_port.flows) < by_rule.num_rules
    assert by_port.gpu_utilisation == pytest.approx(by_rule.gpu_utilisation, rel=0.05)
