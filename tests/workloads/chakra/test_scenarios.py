"""The workload ``chakra`` in a scenario: it is played as its trace says, and what does not fit is named by its key."""

from pathlib import Path
from typing import Any

import pytest
import yaml

import trainyard as ty
from tests.workloads.chakra.builders import collective, compute, write
from workloads.chakra.wire import CollectiveType
from workloads.loading import ScenarioError, load_scenario


def written(tmp_path: Path, gpus_per_host: int = 1, **keys: Any) -> Path:
    nodes = [compute(1, 1000), collective(2, CollectiveType.ALL_REDUCE, 125_000_000, 1), compute(3, 500, 2)]
    write(tmp_path / "mine", *[nodes] * 2)
    hosts = ["h0", "h1"][: 2 // gpus_per_host]
    workload = {"type": "chakra", "trace": "mine"} | keys
    job = {"name": "job", "hosts": hosts, "gpus_per_host": gpus_per_host, "iterations": 2, "workload": workload}
    topology = {"kind": "star", "hosts": 2, "host_link_gbps": 100}
    path = tmp_path / "scenario.yaml"
    path.write_text(yaml.safe_dump({"name": "s", "topology": topology, "jobs": [job]}), encoding="utf-8")
    return path


def test_an_iteration_takes_what_the_trace_says(tmp_path: Path) -> None:
    result = ty.run(written(tmp_path), on="simulator", policy="ecmp", progress=False)
    (job,) = result.jobs
    # 125 MB at 100 Gbit/s are 10 ms, between 1 ms and 0.5 ms of computing.
    assert job.iteration_time_s == pytest.approx(11.5e-3, rel=1e-3)
    assert result.gpu_utilisation == pytest.approx(1.5 / 11.5, rel=1e-3)


def test_each_step_of_a_ring_has_its_latency(tmp_path: Path) -> None:
    result = ty.run(written(tmp_path, step_latency_s=2e-3), on="simulator", policy="ecmp", progress=False)
    # A ring of two hosts reduces in two steps.
    assert result.jobs[0].iteration_time_s == pytest.approx(15.5e-3, rel=1e-3)


def test_ranks_of_an_all_to_all_may_give_different_sizes(tmp_path: Path) -> None:
    path = written(tmp_path)
    ranks = [
        [compute(1, 1000), collective(2, CollectiveType.ALL_TO_ALL, size, 1)] for size in (50_000_000, 250_000_000)
    ]
    write(tmp_path / "mine", *ranks)
    result = ty.run(path, on="simulator", policy="ecmp", progress=False)
    # Half of the larger part goes to the other host at 100 Gbit/s.
    assert result.jobs[0].iteration_time_s == pytest.approx(11e-3, rel=1e-3)


def test_what_has_operations_takes_the_longer_of_computing_and_reading(tmp_path: Path) -> None:
    path = written(tmp_path, device={"flops_per_s": 1e12, "efficiency": 1.0}, memory_bytes_per_s=1e9)
    bound_by_memory = compute(1, 0, num_ops=10**9, tensor_size=3 * 10**6)
    bound_by_operations = compute(2, 0, 1, num_ops=5 * 10**9, tensor_size=10**6)
    write(tmp_path / "mine", *[[bound_by_memory, bound_by_operations]] * 2)
    result = ty.run(path, on="simulator", policy="ecmp", progress=False)
    assert result.jobs[0].iteration_time_s == pytest.approx(8e-3, rel=1e-6)


@pytest.mark.parametrize(
    ("gpus_per_host", "keys", "problem"),
    [
        (1, {"trace": "absent"}, "absent: cannot be read: No such file or directory"),
        (2, {}, "workload.nvlink_gbps: missing; ranks of one host communicate with each other"),
        (1, {"groups": "scenario.yaml"}, "expected lists of ranks by the names of communicators, in JSON"),
        (1, {"merge_s": -1.0}, "workload.merge_s: expected greater than or equal to 0"),
    ],
)
def test_what_does_not_fit_is_named(tmp_path: Path, gpus_per_host: int, keys: dict[str, Any], problem: str) -> None:
    with pytest.raises(ScenarioError) as raised:
        load_scenario(written(tmp_path, gpus_per_host, **keys))
    assert problem in "\n".join(raised.value.messages)


def test_the_number_of_ranks_must_be_that_of_the_gpus(tmp_path: Path) -> None:
    path = written(tmp_path)
    write(tmp_path / "mine", *[[compute(1, 5)]] * 3)
    with pytest.raises(ScenarioError, match="expected as many GPUs as the trace has ranks, 3, got 2 hosts with 1"):
        load_scenario(path)
