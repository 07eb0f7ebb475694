"""A scenario has the same answer on simulator, emulator and real hosts.

Crux gives each of two jobs an uplink of its own, so that no flow shares a queue: a job's shortest iteration then says
what its links carry. Other programs of the machine can only slow real hosts: links have 50 Mbit/s, a quarter of what
two idle cores carry, and the best of a few runs counts. Under ``ecmp`` the jobs share an uplink. TCP does not share as
exactly as a model does, so real hosts need only have the lower utilisation there.
"""

import pytest

from experiments.scenarios.backend import Backend, run_on
from experiments.scenarios.results import RunResult
from topologies.namespaces.fabric_namespaces import FabricNamespaces
from topologies.namespaces.host_network import NetworkError
from workloads.scenario import Scenario

pytestmark = pytest.mark.slow

SPREAD, SHARED = "crux", "ecmp"
IN_VIRTUAL_TIME, IN_REAL_TIME = 0.05, 0.1
TRIES = 3


def _job(name: str, hosts: list[str], size_bytes: float) -> dict[str, object]:
    workload = {"type": "phases", "compute_s": 0.2, "comm_start": 1, "pattern": "ring", "bytes": size_bytes}
    return {"name": name, "hosts": hosts, "gpus_per_host": 1, "iterations": 4, "workload": workload}


SCENARIO = Scenario.model_validate(
    {
        "name": "two-jobs",
        "topology": {
            "kind": "clos",
            "tors": 2,
            "aggs": 2,
            "hosts_per_tor": 2,
            "nics_per_host": 1,
            "gpus_per_host": 1,
            "host_link_gbps": 100,
            "uplink_gbps": 100,
        },
        "jobs": [_job("small", ["h0", "h2"], 4e9), _job("large", ["h1", "h3"], 8e9)],
        "scale": 2000,
        "seed": 2,  # of the fabric's hash, by which both jobs take one uplink
        "warm_up_iterations": 1,
    }
)


def _run(back_end: Backend, policy: str) -> RunResult:
    return run_on(back_end, SCENARIO, policy, on_progress=lambda *_: None)


def _shortest_s(result: RunResult) -> dict[str, float]:
    """Return the shortest iteration of every job, without the first, in which the Plan comes."""
    return {job.name: min(each.end_s - each.start_s for each in job.iterations[1:]) for job in result.jobs}


def _mean_s(result: RunResult) -> dict[str, float | None]:
    return {job.name: job.iteration_time_s for job in result.jobs}


@pytest.fixture(scope="module")
def simulated() -> dict[str, RunResult]:
    return {policy: _run(Backend.SIMULATOR, policy) for policy in (SHARED, SPREAD)}


def test_the_simulator_says_that_jobs_share_a_queue_without_crux_alone(simulated: dict[str, RunResult]) -> None:
    alone_s = {job.name: job.ideal_iteration_time_s for job in simulated[SPREAD].jobs}
    assert _mean_s(simulated[SPREAD]) == pytest.approx(alone_s, rel=0.001)
    assert simulated[SHARED].gpu_utilisation < 0.8 * simulated[SPREAD].gpu_utilisation


def test_the_emulator_has_the_simulators_answer(simulated: dict[str, RunResult]) -> None:
    emulated = {policy: _run(Backend.EMULATOR, policy) for policy in (SHARED, SPREAD)}
    for policy, result in emulated.items():
        assert _mean_s(result) == pytest.approx(_mean_s(simulated[policy]), rel=IN_VIRTUAL_TIME), policy
    assert emulated[SHARED].gpu_utilisation < emulated[SPREAD].gpu_utilisation


def test_real_hosts_have_the_simulators_answer(simulated: dict[str, RunResult]) -> None:
    try:
        with FabricNamespaces(SCENARIO.topology.build()):
            pass
    except NetworkError as error:
        pytest.skip(f"no scenario is run on real hosts: {error}")
    expected = pytest.approx(_shortest_s(simulated[SPREAD]), rel=IN_REAL_TIME)
    shared = _run(Backend.NAMESPACES, SHARED)
    for _ in range(TRIES):
        spread = _run(Backend.NAMESPACES, SPREAD)
        if _shortest_s(spread) == expected and shared.gpu_utilisation < spread.gpu_utilisation:
            break
    assert _shortest_s(spread) == expected
    assert shared.gpu_utilisation < spread.gpu_utilisation
