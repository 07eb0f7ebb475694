"""Cables, switches and controllers that fail in a simulated run: what a hand computes, and what no run may do."""

from typing import Any

import pytest

from controller.policy.enforcement import Enforcement
from controller.policy.policy_name import PolicyName
from controller.run.results import JobResult, RunResult
from controller.run.simulated import run_on_simulator
from tests.integration.iterations import iteration_begins_s
from topologies.addressing import FIRST_SOURCE_PORT, FLOW_DESTINATION_PORT, UDP_PROTOCOL, FiveTuple
from topologies.ecmp import hash_multipliers
from topologies.routing import Routing
from topologies.steering import Steering
from workloads.scenario import Scenario

EXACTLY = {"rel": 1e-9}


def _job(name: str, hosts: tuple[str, str], **more: Any) -> dict[str, Any]:
    """Computes for 0.2 s, and sends for 0.1 s from the middle on, where it has its links alone."""
    workload = {"type": "phases", "compute_s": 0.2, "comm_start": 0.5, "bytes": 12.5e6, "pattern": "ring"}
    return {"name": name, "hosts": hosts, "gpus_per_host": 1, "iterations": 8, "workload": workload} | more


def _scenario(kind: dict[str, Any], jobs: list[dict[str, Any]], *events: dict[str, Any], **more: Any) -> Scenario:
    topology = {"gpus_per_host": 1, "host_link_gbps": 1, "delay_us": 0} | kind
    document = {"name": "fails", "topology": topology, "jobs": jobs, "events": events, "recovery_s": 0.3}
    return Scenario.model_validate(document | more)


def _run(
    scenario: Scenario, policy: PolicyName = PolicyName.CRUX, enforcement: Enforcement = Enforcement.LEVELS
) -> RunResult:
    return run_on_simulator(scenario, policy, enforcement, on_progress=lambda *_: None)


def _outage(from_s: float, to_s: float, **what: Any) -> tuple[dict[str, Any], dict[str, Any]]:
    return {"at_s": from_s, "state": "down"} | what, {"at_s": to_s, "state": "up"} | what


STAR = {"kind": "star", "hosts": 4}
CLOS = {"kind": "clos", "tors": 2, "aggs": 2, "hosts_per_tor": 2, "uplink_gbps": 1}
BOTH = [_job("one", ("h0", "h1")), _job("other", ("h2", "h3"))]
ACROSS = [_job("one", ("h0", "h2")), _job("other", ("h1", "h3"))]


def test_a_switch_serves_again_a_recovery_after_it_is_up() -> None:
    """Down at 0.55, serving from 0.9 on: senders of the transfer that is half over try at 0.75 and 1.15."""
    result = _run(_scenario(STAR, BOTH, *_outage(0.55, 0.6, switch="t0")))
    for job in result.jobs:
        expected = [0.0, 0.2, 0.4, *(1.2 + 0.2 * number for number in range(5))]
        assert iteration_begins_s(job) == pytest.approx(expected, **EXACTLY)
    assert [event.at_s for event in result.events] == [0.55, 0.6]


def test_a_transfer_that_starts_on_a_cut_cable_waits_from_its_start() -> None:
    """Cut while all compute, at 0.45; the transfer begins at 0.5 and is tried again at 0.7."""
    result = _run(_scenario(STAR, BOTH, *_outage(0.45, 0.65, link=["h1", "t0"])))
    first, second = map(iteration_begins_s, result.jobs)
    assert first[3] == pytest.approx(0.8, **EXACTLY)
    assert second == pytest.approx([0.2 * number for number in range(8)], **EXACTLY)


def test_cables_of_a_switch_that_recovers_stay_cut() -> None:
    events = sorted(
        (*_outage(0.45, 0.5, switch="t0"), *_outage(0.47, 1.4, link=["h0", "t0"])), key=lambda event: event["at_s"]
    )
    first, second = map(iteration_begins_s, _run(_scenario(STAR, BOTH, *events)).jobs)
    # Senders try at 0.7, 1.1 and 1.9; the switch is back at 0.8.
    assert (first[3], second[3]) == (pytest.approx(2.0, **EXACTLY), pytest.approx(1.2, **EXACTLY))


def test_a_flow_waits_while_its_acknowledgements_are_lost() -> None:
    """The cable that is cut is on the hash's way back of the only flow, and not on its way out."""
    flow = {"source": "h0", "destination": "h2", "bytes": 12.5e6}
    workload = {"type": "phases", "compute_s": 0.2, "comm_start": 0.5, "flows": [flow]}
    fabric = _scenario(CLOS, ACROSS).topology.build()
    ends = fabric.nics["h0"][0].address, fabric.nics["h2"][0].address
    five_tuple = FiveTuple(*ends, UDP_PROTOCOL, FIRST_SOURCE_PORT, FLOW_DESTINATION_PORT)
    for seed in range(20):
        routing = Routing(fabric, hash_multipliers(fabric.switches, seed))
        way_out, way_back = (fabric.nodes_of(routing.hashed_path(each))[2] for each in (five_tuple, five_tuple.reverse))
        if way_out != way_back:
            break
    cut = _outage(0.55, 0.6, link=["t0", way_back])
    result = _run(_scenario(CLOS, [_job("one", ("h0", "h2"), workload=workload)], *cut, seed=seed), PolicyName.ECMP)
    assert iteration_begins_s(result.jobs[0])[3] == pytest.approx(0.8, **EXACTLY)


def _are_undisturbed(job: JobResult) -> bool:
    begins_s = iteration_begins_s(job)
    return begins_s == pytest.approx([begins_s[0] + 0.2 * number for number in range(8)], **EXACTLY)


@pytest.mark.parametrize("steering", Steering)
def test_a_controller_that_dies_costs_nothing_and_the_next_one_plans_who_came_meanwhile(steering: Steering) -> None:
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


@pytest.mark.parametrize("policy", [PolicyName.VARYS, PolicyName.SINCRONIA, PolicyName.ECHELONFLOW, PolicyName.FIFO])
def test_whoever_sets_rates_leaves_none_to_flows_that_wait(policy: PolicyName) -> None:
    """Pipelines whose groups are open while their cable is cut, twice, beside one that has its own."""
    pipeline = {"type": "pp", "model": "bert", "micro_batches": 3, "schedule": "1f1b"}
    own = {"workload": pipeline, "iterations": 3}
    jobs = [_job("one", ("h0", "h2"), **own), _job("other", ("h1", "h3"), **own)]
    fast = {"kind": "clos", "tors": 2, "aggs": 1, "hosts_per_tor": 2, "uplink_gbps": 100, "host_link_gbps": 100}
    cuts = (*_outage(0.1, 0.2, link=["h0", "t0"]), *_outage(0.7, 1.9, link=["t0", "a0"]))
    cut, whole = (_run(_scenario(fast, jobs, *events), policy, Enforcement.IDEAL) for events in (cuts, ()))
    for failed, other in zip(cut.jobs, whole.jobs, strict=True):
        assert (failed.jct_s or 0.0) > (other.jct_s or 0.0) + 1.0
        assert len(iteration_begins_s(failed)) == 3
