"""Controllers and switches restart during a run: jobs go on, rules stay, and runs are repeatable."""

import asyncio
import json
from itertools import pairwise
from typing import Any

import pytest

from emulator.entries import EntryKey
from emulator.switch import EmulatedSwitch
from experiments.scenarios import emulated
from experiments.scenarios.emulated import run_on_emulator
from experiments.scenarios.results import JobResult, RunResult, run_object
from tests.integration.iterations import iteration_begins_s
from workloads.scenario import Scenario

_ALONE_S = {"vision": 0.35, "language": 0.7}
_ITERATIONS = {"vision": 24, "language": 12}
_LEASE_S = 2.0

CONTROLLER = ({"at_s": 1.0, "controller": 0, "state": "down"}, {"at_s": 1.5, "controller": 0, "state": "up"})
SWITCH = ({"at_s": 4.0, "switch": "a0", "state": "down"}, {"at_s": 4.2, "switch": "a0", "state": "up"})


def _job(name: str, hosts: tuple[str, str], **more: Any) -> dict[str, Any]:
    """Return a job that only computes for half of an iteration, and only sends for a seventh of it."""
    compute_s = _ALONE_S[name] * 6 / 7
    size_bytes = _ALONE_S[name] * 4 / 7 * 1e9 / 8
    workload = {"type": "phases", "compute_s": compute_s, "comm_start": 0.5, "bytes": size_bytes, "pattern": "ring"}
    job = {"name": name, "hosts": hosts, "gpus_per_host": 1, "iterations": _ITERATIONS[name], "workload": workload}
    return job | more


def _run(*events: dict[str, Any], **language: Any) -> RunResult:
    topology = {"kind": "clos", "tors": 2, "aggs": 2, "hosts_per_tor": 2, "gpus_per_host": 1}
    document = {
        "name": "restarts",
        "topology": topology | {"host_link_gbps": 1, "uplink_gbps": 1},
        "jobs": [_job("vision", ("h0", "h2")), _job("language", ("h1", "h3"), **language)],
        "events": events,
        "recovery_s": 0.5,
    }
    return asyncio.run(run_on_emulator(Scenario.model_validate(document), "crux", on_progress=lambda *_: None))


def _iterations_s(job: JobResult) -> list[float]:
    return [after - before for before, after in pairwise(iteration_begins_s(job))]


def _are_undisturbed(job: JobResult) -> bool:
    return _iterations_s(job) == pytest.approx([_ALONE_S[job.name]] * (_ITERATIONS[job.name] - 1), rel=0.01)


@pytest.fixture
def deleted(monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, str, list[str]]]:
    """Record every deleted flow rule: its switch, its key, and all rules of the switch at that moment."""
    rules: list[tuple[str, str, list[str]]] = []
    delete = EmulatedSwitch.delete

    def noted(switch: EmulatedSwitch, table: str, key: EntryKey) -> None:
        if table == "ingress.flow":
            rules.append((switch.name, str(key), sorted(map(str, switch.entries(table)))))
        delete(switch, table, key)

    monkeypatch.setattr(EmulatedSwitch, "delete", noted)
    # So that the grace of the new controller, in which it deletes nothing, is over when the jobs depart.
    monkeypatch.setattr(emulated, "LEASE_S", _LEASE_S)
    return rules


def test_a_controller_that_is_killed_and_restarted_costs_nothing(deleted: list[tuple[str, str, list[str]]]) -> None:
    result = _run(*CONTROLLER)
    assert all(map(_are_undisturbed, result.jobs))
    with_restart = deleted.copy()
    deleted.clear()
    _run()
    # The jobs' departures delete the same rules of the same ones: none was deleted or changed before.
    assert with_restart == deleted != []


def test_a_job_that_arrives_while_there_is_no_controller_is_planned_by_the_next_one() -> None:
    _, late = _run(*CONTROLLER, arrival_s=1.2).jobs
    assert late.level is not None
    assert _are_undisturbed(late)


def test_a_switch_that_restarts_empty_is_refilled_while_others_go_on() -> None:
    """Crux routes the jobs over different switches, and only one of them crosses the switch that restarts."""
    after_the_last_departure = (SWITCH[0] | {"at_s": 100.0}, SWITCH[1] | {"at_s": 101.0})
    result = _run(*SWITCH, *after_the_last_departure)
    assert [event.at_s for event in result.events] == [4.0, 4.2]
    passing_by, crossing = sorted(result.jobs, key=lambda job: max(_iterations_s(job)) - _ALONE_S[job.name])
    assert _are_undisturbed(passing_by)
    disturbed = [took_s > 1.01 * _ALONE_S[crossing.name] for took_s in _iterations_s(crossing)]
    # One iteration waits for the switch and for the senders' timeouts; all after it are as before.
    assert sum(disturbed) == 1
    assert max(_iterations_s(crossing)) < _ALONE_S[crossing.name] + 3.0


def test_a_job_that_arrives_while_a_switch_is_down_is_planned_at_once() -> None:
    long_outage = ({"at_s": 0.1, "switch": "a0", "state": "down"}, {"at_s": 9.0, "switch": "a0", "state": "up"})
    result = _run(*long_outage, arrival_s=1.0)
    assert all(job.level is not None for job in result.jobs)


def test_two_runs_with_restarts_print_the_same_bytes() -> None:
    overlapping = (
        CONTROLLER[0],
        {"at_s": 1.1, "switch": "a0", "state": "down"},
        {"at_s": 1.2, "switch": "a0", "state": "up"},
        CONTROLLER[1],
        *SWITCH,
    )
    first, second = (json.dumps(run_object(_run(*overlapping))) for _ in range(2))
    assert first == second
    measured = json.loads(first)
    assert all(job["jct_s"] is not None and job["level"] is not None for job in measured["jobs"])
    assert all(group["tardiness_s"] is not None for group in measured["flow_groups"])
