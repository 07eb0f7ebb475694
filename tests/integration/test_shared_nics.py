"""Jobs that share a NIC iterate alike on simulator and emulator, whatever order their host and the switches keep."""

import asyncio
from collections.abc import Callable
from typing import Any

import pytest

from experiments.scenarios.emulated import run_on_emulator
from experiments.scenarios.simulated import run_on_simulator
from policies.policy import Policy
from policies.registry import load_policy
from workloads.scenario import Scenario

pytestmark = pytest.mark.slow


def job(name: str, hosts: list[str], compute_s: float, gigabytes: float) -> dict[str, Any]:
    workload = {"type": "phases", "compute_s": compute_s, "comm_start": 0.5, "bytes": gigabytes * 1e9}
    return {
        **{"name": name, "hosts": hosts, "gpus_per_host": 2, "duration_s": 4.0},
        "workload": workload | {"pattern": "pairs"},
    }


def scenario(*jobs: dict[str, Any]) -> Scenario:
    """Three hosts on either side of a cable that is a little slower than their NICs."""
    topology = {"kind": "dumbbell", "hosts_per_side": 3, "host_link_gbps": 100, "bottleneck_gbps": 70}
    return Scenario.model_validate(
        {
            **{"name": "one NIC", "topology": topology, "jobs": jobs},
            **{"compute_jitter": 0.02, "measure": {"from_s": 0.5, "to_s": 4.0}},
        }
    )


def one_on_the_cable(first: str, second: str, other: str) -> Scenario:
    """Two jobs send from one NIC, the first to a neighbour; the second meets one of another host on the cable."""
    return scenario(
        job(first, ["h0", "h1"], 0.1, 0.7), job(second, ["h0", "h4"], 0.13, 0.6), job(other, ["h2", "h5"], 0.11, 0.5)
    )


def all_on_the_cable(first: str, second: str, other: str) -> Scenario:
    """Two jobs that send from one NIC meet one of another host on the cable."""
    return scenario(
        job(first, ["h0", "h3"], 0.1, 0.4), job(second, ["h0", "h4"], 0.13, 0.5), job(other, ["h2", "h5"], 0.11, 0.5)
    )


def assert_agreement(given: Scenario, policy: Policy | str) -> None:
    emulated = asyncio.run(run_on_emulator(given, policy, on_progress=lambda *_: None))
    simulated = run_on_simulator(given, policy, on_progress=lambda *_: None)
    times_s = {job.name: job.iteration_time_s for job in simulated.jobs}
    expected_s = {job.name: pytest.approx(job.iteration_time_s, rel=0.05) for job in emulated.jobs}
    assert times_s == expected_s


@pytest.mark.parametrize("jobs", [one_on_the_cable, all_on_the_cable])
@pytest.mark.parametrize(
    "names",
    [
        pytest.param(("a-0-0", "b-0-0", "c-0-0"), id="no order"),
        pytest.param(("a-7-0", "b-6-1", "c-5-2"), id="a level each"),
        pytest.param(("a-7-0", "b-6-1", "c-6-1"), id="one level on the cable"),
        pytest.param(("a-6-0", "b-6-1", "c-6-2"), id="an order at the NIC alone"),
        pytest.param(("a-6-1", "b-6-0", "c-6-0"), id="the other order at the NIC alone"),
    ],
)
def test_jobs_agree_under_any_levels_and_orders(names: tuple[str, str, str], jobs: Callable[..., Scenario]) -> None:
    assert_agreement(jobs(*names), load_policy("tests.integration.named_levels:policy"))


@pytest.mark.parametrize("num_levels", [1, 2])
@pytest.mark.parametrize("policy", ["crux", "trainyard"])
def test_jobs_agree_under_policies_with_few_levels(policy: str, num_levels: int) -> None:
    assert_agreement(one_on_the_cable("a", "b", "c").model_copy(update={"num_levels": num_levels}), policy)
