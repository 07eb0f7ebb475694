"""Simulator and emulator agree on a fabric with ordinary switches, whose hash the controller does not know."""

import asyncio

import pytest

from experiments.scenarios.emulated import run_on_emulator
from experiments.scenarios.simulated import run_on_simulator
from tests.topologies.mixing import with_ordinary
from topologies.clos import ClosSpecification
from topologies.expanding import expanded
from topologies.steering import Steering
from workloads.scenario import Scenario


def scenario_with(*ordinary: str) -> Scenario:
    """Three jobs that share the links between two ToRs; these switches are ordinary."""
    clos = ClosSpecification(
        kind="clos", tors=2, aggs=2, hosts_per_tor=4, host_link_gbps=100, uplink_gbps=100, gpus_per_host=8
    )
    topology = expanded(with_ordinary(clos.build(), ordinary)).model_dump(mode="json")
    jobs = [
        {
            "name": name,
            "hosts": hosts,
            "gpus_per_host": 8,
            "iterations": 5,
            "workload": {"type": "phases", "compute_s": 0.2, "comm_start": 0.5, "bytes": 2e9, "pattern": "ring"},
        }
        for name, hosts in (("vision", ["h0", "h4"]), ("language", ["h1", "h5"]), ("speech", ["h2", "h6"]))
    ]
    return Scenario.model_validate({"name": "mixed", "seed": 1, "topology": topology, "jobs": jobs})


@pytest.mark.parametrize("ordinary", [(), ("a0",), ("a0", "a1"), ("t0", "t1")])
def test_iteration_times_agree(ordinary: tuple[str, ...]) -> None:
    scenario = scenario_with(*ordinary)
    emulated = asyncio.run(run_on_emulator(scenario, "crux", on_progress=lambda *_: None))
    simulated = run_on_simulator(scenario, "crux", on_progress=lambda *_: None)
    for job, other in zip(simulated.jobs, emulated.jobs, strict=True):
        print(ordinary, job.name, job.iteration_time_s, other.iteration_time_s)
        assert job.iteration_time_s == pytest.approx(other.iteration_time_s, rel=0.05)
    assert simulated.num_rules == emulated.num_rules


def test_source_ports_that_probes_have_shown_lead_around_the_hash_of_ordinary_switches() -> None:
    guessed = scenario_with("t0", "t1")
    probed = guessed.model_copy(update={"steering": Steering.SOURCE_PORT, "probes": True})
    lasts_s = {}
    for name, scenario in (("guessed", guessed), ("probed", probed)):
        result = asyncio.run(run_on_emulator(scenario, "crux", on_progress=lambda *_: None))
        lasts_s[name] = max(job.iterations[-1].end_s for job in result.jobs)
        print(f"{name}: the last iteration ends at {lasts_s[name]:.3f} s")
    assert lasts_s["probed"] < 0.9 * lasts_s["guessed"]
