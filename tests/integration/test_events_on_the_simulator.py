"""Failures of cables, switches and controllers in simulated runs, compared with times computed by hand."""

import asyncio
import math
from typing import Any

import pytest

from experiments.scenarios.emulated import run_on_emulator
from experiments.scenarios.results import JobResult, RunResult
from experiments.scenarios.simulated import run_on_simulator
from policies.enforcement import Enforcement
from tests.integration.iterations import iteration_begins_s
from topologies.addressing import FIRST_SOURCE_PORT, FLOW_DESTINATION_PORT, UDP_PROTOCOL, FiveTuple
from topologies.ecmp import hash_multipliers
from topologies.routing import Routing
from topologies.steering import Steering
from workloads.scenario import Scenario

EXACTLY = {"rel": 1e-9}
TIMEOUT_S = 4.096e-6 * 2**14


def _tried_s(since_s: float, there_s: float) -> float:
    """Return when a sender, whose packets are lost since a time, first finds that its path works."""
    return since_s + math.ceil((there_s - since_s) / TIMEOUT_S) * TIMEOUT_S


def _job(name: str, hosts: tuple[str, str], **more: Any) -> dict[str, Any]:
    """Return a job that computes for 0.2 s and, from the middle on, sends for 0.1 s on links of its own."""
    workload = {"type": "phases", "compute_s": 0.2, "comm_start": 0.5, "bytes": 12.5e6, "pattern": "ring"}
    return {"name": name, "hosts": hosts, "gpus_per_host": 1, "iterations": 8, "workload": workload} | more


def _scenario(kind: dict[str, Any], jobs: list[dict[str, Any]], *events: dict[str, Any], **more: Any) -> Scenario:
    topology = {"gpus_per_host": 1, "host_link_gbps": 1, "delay_us": 0} | kind
    document = {"name": "fails", "topology": topology, "jobs": jobs, "events": events, "recovery_s": 0.3}
    return Scenario.model_validate(document | more)


def _run(scenario: Scenario, policy: str = "crux", enforcement: Enforcement = Enforcement.LEVELS) -> RunResult:
    return run_on_simulator(scenario, policy, enforcement, on_progress=lambda *_: None)


def _outage(from_s: float, to_s: float, **what: Any) -> tuple[dict[str, Any], dict[str, Any]]:
    return {"at_s": from_s, "state": "down"} | what, {"at_s": to_s, "state": "up"} | what


STAR = {"kind": "star", "hosts": 4}
CLOS = {"kind": "clos", "tors": 2, "aggs": 2, "hosts_per_tor": 2, "uplink_gbps": 1}
BOTH = [_job("one", ("h0", "h1")), _job("other", ("h2", "h3"))]
ACROSS = [_job("one", ("h0", "h2")), _job("other", ("h1", "h3"))]


def test_a_switch_serves_again_a_recovery_after_it_is_up() -> None:
    """The switch fails at 0.55 s, when the third transfer is half over, and serves again from 0.9 s on."""
    result = _run(_scenario(STAR, BOTH, *_outage(0.55, 0.6, switch="t0")))
    for job in result.jobs:
        expected = [0.0, 0.2, 0.4, *(_tried_s(0.55, 0.9) + 0.05 + 0.2 * number for number in range(5))]
        assert iteration_begins_s(job) == pytest.approx(expected, **EXACTLY)
    assert [event.at_s for event in result.events] == [0.55, 0.6]


def test_a_transfer_that_starts_on_a_cut_cable_waits_from_its_start() -> None:
    """The cut comes at 0.45 s, while all jobs compute; the transfer begins at 0.5 s."""
    result = _run(_scenario(STAR, BOTH, *_outage(0.45, 0.65, link=["h1", "t0"])))
    first, second = map(iteration_begins_s, result.jobs)
    assert first[3] == pytest.approx(_tried_s(0.5, 0.65) + 0.1, **EXACTLY)
    assert second == pytest.approx([0.2 * number for number in range(8)], **EXACTLY)


def test_cables_of_a_switch_that_recovers_stay_cut() -> None:
    events = sorted(
        (*_outage(0.45, 0.5, switch="t0"), *_outage(0.47, 1.4, link=["h0", "t0"])), key=lambda event: event["at_s"]
    )
    first, second = map(iteration_begins_s, _run(_scenario(STAR, BOTH, *events)).jobs)
    there_s = 1.4, 0.8
    assert [first[3], second[3]] == pytest.approx([_tried_s(0.5, time_s) + 0.1 for time_s in there_s], **EXACTLY)


def _one_way(seed: int) -> tuple[Scenario, str, str]:
    """Return a flow from h0 to h2, and the aggregation switches that it and its acknowledgements cross by the hash."""
    flow = {"source": "h0", "destination": "h2", "bytes": 12.5e6}
    workload = {"type": "phases", "compute_s": 0.2, "comm_start": 0.5, "flows": [flow]}
    scenario = _scenario(CLOS, [_job("one", ("h0", "h2"), workload=workload)], seed=seed)
    fabric = scenario.topology.build()
    routing = Routing(fabric, hash_multipliers(fabric.switches, seed))
    ends = fabric.nics["h0"][0].address, fabric.nics["h2"][0].address
    out = FiveTuple(*ends, UDP_PROTOCOL, FIRST_SOURCE_PORT, FLOW_DESTINATION_PORT)
    way_out, way_back = (fabric.nodes_of(routing.hashed_path(each))[2] for each in (out, out.reverse))
    return scenario, way_out, way_back


def _failing(scenario: Scenario, *events: dict[str, Any]) -> Scenario:
    return Scenario.model_validate(scenario.model_dump(exclude_unset=True) | {"events": events})


@pytest.fixture(scope="module")
def one_way() -> tuple[Scenario, str, str]:
    """Return such a flow whose acknowledgements cross another switch."""
    return next(found for found in map(_one_way, range(20)) if found[1] != found[2])


def test_a_switch_avoids_its_own_dead_port_at_once(one_way: tuple[Scenario, str, str]) -> None:
    scenario, way_out, _ = one_way
    cut = _failing(scenario, *_outage(0.55, 5.0, link=["t0", way_out]))
    assert _are_undisturbed(_run(cut, "ecmp").jobs[0])


def test_a_flow_waits_while_its_acknowledgements_are_lost(one_way: tuple[Scenario, str, str]) -> None:
    """A switch behind the first has no other path for them; base routing has one 0.01 s later."""
    scenario, _, way_back = one_way
    cut = _failing(scenario, *_outage(0.55, 5.0, link=["t0", way_back]))
    expected_s = _tried_s(0.55, 0.56) + 0.05
    assert iteration_begins_s(_run(cut, "ecmp").jobs[0])[3] == pytest.approx(expected_s, **EXACTLY)


def test_without_a_controller_nothing_is_rerouted(one_way: tuple[Scenario, str, str]) -> None:
    """The next controller serves from 0.95 s on."""
    scenario, _, way_back = one_way
    gone = _outage(0.5, 0.65, controller=0)
    cut = _outage(0.55, 5.0, link=["t0", way_back])
    failing = _failing(scenario, gone[0], cut[0], gone[1], cut[1])
    expected_s = _tried_s(0.55, 0.95) + 0.05
    assert iteration_begins_s(_run(failing, "ecmp").jobs[0])[3] == pytest.approx(expected_s, **EXACTLY)


def test_a_plan_moves_flows_whose_rules_use_a_dead_port() -> None:
    """Each job crosses a switch of its own; one switch fails, and both jobs share the other."""
    whole = _scenario(CLOS, ACROSS, seed=3)
    before = {flow.job: whole.topology.build().nodes_of(flow.path)[2] for flow in _run(whole).flows}
    assert before["one"] != before["other"]
    result = _run(_failing(whole, *_outage(0.55, 9.0, switch=before["one"])))
    assert {result.fabric.nodes_of(flow.path)[2] for flow in result.flows} == {before["other"]}
    assert iteration_begins_s(result.jobs[0])[3] == pytest.approx(_tried_s(0.55, 0.56) + 0.05, **EXACTLY)


def test_a_flapping_cable_is_avoided_after_its_second_failure() -> None:
    """The flow leaves the cable with the first failure, comes back, and leaves it for good with the second."""
    whole = _scenario(CLOS, ACROSS, seed=3)
    fabric = whole.topology.build()
    own = {flow.job: fabric.nodes_of(flow.path)[2] for flow in _run(whole).flows}["one"]
    flaps = [event for number in range(5) for event in _outage(0.5 + number, 0.9 + number, link=["t0", own])]
    jobs = [job | {"iterations": 40} for job in ACROSS]
    flapping, cut = (
        _run(_scenario(CLOS, jobs, *events, seed=3)) for events in (flaps, (*flaps[:3], flaps[-1] | {"at_s": 30.0}))
    )
    assert [job.computing for job in flapping.jobs] == [job.computing for job in cut.jobs]


@pytest.mark.parametrize("policy", ["ecmp", "crux"])
def test_both_back_ends_agree_on_the_cost_and_the_detours_of_a_cut(policy: str) -> None:
    """The cut comes amid transfers: packets in flight are lost, for some flows behind their first switch."""
    whole = _scenario(CLOS | {"aggs": 3, "delay_us": 1}, ACROSS)
    own = {flow.job: whole.topology.build().nodes_of(flow.path)[2] for flow in _run(whole, policy).flows}["one"]
    cut = _failing(whole, *_outage(0.55, 9.0, link=["t1", own]))
    emulated = asyncio.run(run_on_emulator(cut, policy, on_progress=lambda *_: None))
    simulated = _run(cut, policy)
    assert {(flow.job, flow.path) for flow in simulated.flows} == {(flow.job, flow.path) for flow in emulated.flows}
    assert not _are_undisturbed(simulated.jobs[0])
    for fluid, packets in zip(simulated.jobs, emulated.jobs, strict=True):
        assert iteration_begins_s(fluid) == pytest.approx(iteration_begins_s(packets), abs=0.005)


def test_a_host_that_is_down_stops_only_its_job() -> None:
    """At 0.45 s the third iteration has computed 0.05 s of its 0.2 s; it sends at 1.05 s, when half of that is done."""
    result = _run(_scenario(STAR, BOTH, *_outage(0.45, 1.0, host="h1")))
    first, second = map(iteration_begins_s, result.jobs)
    assert first[3] == pytest.approx(1.15, **EXACTLY)
    assert second == pytest.approx([0.2 * number for number in range(8)], **EXACTLY)
    assert sum(interval.end_s - interval.start_s for interval in result.jobs[0].computing) == pytest.approx(1.6)


def _are_undisturbed(job: JobResult) -> bool:
    begins_s = iteration_begins_s(job)
    return begins_s == pytest.approx([begins_s[0] + 0.2 * number for number in range(8)], **EXACTLY)


@pytest.mark.parametrize("steering", Steering)
def test_a_controller_crash_costs_nothing_and_the_next_one_plans_new_jobs(steering: Steering) -> None:
    jobs = [ACROSS[0], ACROSS[1] | {"arrival_s": 0.75}]
    outage = _outage(0.3, 1.0, controller=0)
    result = _run(_scenario(CLOS, jobs, *outage, seed=3, steering=steering))
    assert _are_undisturbed(result.jobs[0])
    assert result.jobs[1].level is not None
    # From its recovery on Crux leads them apart: until then the hash has them where it likes.
    late = iteration_begins_s(result.jobs[1])
    assert late[-1] - late[4] == pytest.approx(0.6, **EXACTLY)


def test_a_run_ends_only_when_a_controller_knows_of_the_last_departure() -> None:
    result = _run(_scenario(STAR, BOTH, *_outage(1.5, 4.0, controller=0)))
    assert [job.jct_s for job in result.jobs] == pytest.approx([1.6, 1.6], **EXACTLY)
    assert result.ended_s == pytest.approx(4.3, **EXACTLY)


@pytest.mark.parametrize("policy", ["varys", "sincronia", "echelonflow", "fifo"])
def test_ideal_rates_give_waiting_flows_nothing(policy: str) -> None:
    """The flow groups of pipelines are open while their cable is cut, twice, beside a pipeline on another cable."""
    pipeline = {"type": "pp", "model": "bert", "micro_batches": 3, "schedule": "1f1b"}
    own = {"workload": pipeline, "iterations": 3}
    jobs = [_job("one", ("h0", "h2"), **own), _job("other", ("h1", "h3"), **own)]
    fast = {"kind": "clos", "tors": 2, "aggs": 1, "hosts_per_tor": 2, "uplink_gbps": 100, "host_link_gbps": 100}
    cuts = (*_outage(0.1, 0.2, link=["h0", "t0"]), *_outage(0.7, 1.9, link=["t0", "a0"]))
    cut, whole = (_run(_scenario(fast, jobs, *events), policy, Enforcement.IDEAL) for events in (cuts, ()))
    for failed, other in zip(cut.jobs, whole.jobs, strict=True):
        assert (failed.jct_s or 0.0) > (other.jct_s or 0.0) + 1.0
        assert len(iteration_begins_s(failed)) == 3
