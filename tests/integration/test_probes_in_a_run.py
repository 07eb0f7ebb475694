"""Hosts probe during a run, and the controller acts on their reports."""

import asyncio
from itertools import pairwise
from typing import Any

import pytest

from emulator.entries import ActionCall, EntryKey
from emulator.switch import EmulatedSwitch
from experiments.scenarios.emulated import run_on_emulator
from experiments.scenarios.results import RunResult
from tests.integration.iterations import iteration_begins_s
from topologies.steering import Steering
from workloads.scenario import Scenario

_ALONE_S = 0.35
_ITERATIONS = 24


def _run(**keys: Any) -> RunResult:
    workload = {"type": "phases", "compute_s": 0.3, "comm_start": 0.5, "bytes": 0.2 * 1e9 / 8, "pattern": "ring"}
    document = {
        "name": "probes",
        "topology": {
            **{"kind": "clos", "tors": 2, "aggs": 2, "hosts_per_tor": 2, "gpus_per_host": 1},
            **{"host_link_gbps": 1, "uplink_gbps": 1},
        },
        "jobs": [
            {
                **{"name": name, "hosts": hosts, "gpus_per_host": 1, "iterations": _ITERATIONS, "workload": workload},
                "arrival_s": arrival_s,
            }
            for name, hosts, arrival_s in (("one", ("h0", "h2"), 0.0), ("other", ("h1", "h3"), 0.01))
        ],
        "scale": 20,
    }
    scenario = Scenario.model_validate(document | keys)
    return asyncio.run(run_on_emulator(scenario, "crux", on_progress=lambda *_: None))


def _longest_s(result: RunResult) -> float:
    return max(after - before for job in result.jobs for before, after in pairwise(iteration_begins_s(job)))


def _last_s(result: RunResult) -> float:
    """Return the longest of the jobs' last iterations but one."""
    begins = [iteration_begins_s(job) for job in result.jobs]
    return max(some[-1] - some[-2] for some in begins)


# The hash sends all acknowledgements by the other switch, and those of one job by that one: nobody plans these.
@pytest.mark.parametrize("seed", [12, 3])
def test_flows_leave_a_link_that_only_probes_find_dead(seed: int) -> None:
    dies = [{"at_s": 3.0, "link": ["t0", "a0"], "state": "down"}]
    result = _run(events=dies, probes=True, reads_ports=False, seed=seed)
    # Two rounds of a second, in the first of which it died, the reporting interval, a retransmission timer.
    assert 1.0 + _ALONE_S < _longest_s(result) < 2.5 + _ALONE_S
    # Both jobs share the path that is left: the less urgent one sends in two of the other's gaps.
    assert _last_s(result) < 2.1 * _ALONE_S


@pytest.fixture
def deleted(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Record the action of every flow rule that is deleted, in order."""
    actions: list[str] = []
    delete = EmulatedSwitch.delete

    def noted(switch: EmulatedSwitch, table: str, key: EntryKey) -> None:
        if table == "ingress.flow":
            action = dict(switch.entries(table))[key]
            assert isinstance(action, ActionCall)
            actions.append(action.action)
        delete(switch, table, key)

    monkeypatch.setattr(EmulatedSwitch, "delete", noted)
    return actions


def test_with_an_unknown_hash_probed_ports_steer_instead_of_rules(deleted: list[str]) -> None:
    result = _run(hash="unknown", steering=Steering.SOURCE_PORT, probes=True)
    assert _last_s(result) == pytest.approx(_ALONE_S, rel=0.05)
    # Rules lead the four flows until probes have found their ports; then all that rules say is a level.
    assert deleted.count("ingress.steer_and_prioritise") == 4
    assert deleted[-4:] == ["ingress.prioritise"] * 4
