"""Isolated jobs of every parallelism on the emulator have the iteration times and tardiness of a fluid run."""

import asyncio
from typing import Any

import pytest

from experiments.scenarios.emulated import run_on_emulator
from experiments.scenarios.emulated_network import as_emulated
from topologies.fabric import Fabric
from workloads.scenario import Scenario

WORKLOADS: dict[str, dict[str, Any]] = {
    "data parallel": {"type": "dp", "model": "bert"},
    "1F1B": {"type": "pp", "model": "gpt", "micro_batches": 4},
    "GPipe": {"type": "pp", "model": "gpt", "micro_batches": 3, "schedule": "gpipe"},
    "sharded": {"type": "fsdp", "model": "gpt", "layer_groups": 3},
}


def scenario(workload: dict[str, Any]) -> Scenario:
    """Return one job on three hosts of a star, whose PCIe links are slower than its NICs."""
    topology = {"kind": "star", "hosts": 3, "nics_per_host": 2, "host_link_gbps": 1000, "pcie": {"gbps": 250}}
    job = {"name": "job", "gpus": 24, "gpus_per_host": 8, "iterations": 3, "workload": workload}
    document = {"name": "alone", "topology": topology, "jobs": [job], "scale": 1000, "warm_up_iterations": 1}
    return Scenario.model_validate(document)


@pytest.mark.parametrize("workload", WORKLOADS.values(), ids=WORKLOADS.keys())
def test_an_isolated_job_takes_the_time_of_a_fluid_run(workload: dict[str, Any]) -> None:
    result = asyncio.run(run_on_emulator(scenario(workload), "crux", on_progress=lambda *_: None))
    (job,) = result.jobs
    assert job.iteration_time_s == pytest.approx(job.ideal_iteration_time_s, rel=0.01)
    assert result.gpu_utilisation == pytest.approx(result.ideal_gpu_utilisation, rel=0.01)
    for group in result.flow_groups:
        assert group.excess_tardiness_s == pytest.approx(0.0, abs=0.01 * job.ideal_iteration_time_s), group.group


def test_a_pcie_switch_with_one_nic_is_a_slower_nic_and_others_are_refused() -> None:
    def rates_bps(fabric: Fabric) -> set[float]:
        return {link.rate_bps for link in fabric.links}

    one = scenario(WORKLOADS["1F1B"])
    fabric = one.topology.build()
    assert rates_bps(fabric) == {500e9}
    assert rates_bps(as_emulated(fabric)) == {250e9}
    shared = {**one.topology.model_dump(), "pcie": {"gbps": 250, "nics_per_switch": 2}}
    with pytest.raises(ValueError, match="PCIe switches with one NIC, not with 2"):
        as_emulated(type(one.topology).model_validate(shared).build())
