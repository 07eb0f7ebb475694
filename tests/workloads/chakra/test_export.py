"""Exported task graphs: imported again they compute and send the same, and take the same time."""

from pathlib import Path
from typing import Any

import pytest
import yaml

import trainyard as ty
from workloads.chakra.export import write_trace
from workloads.jobs import training_jobs
from workloads.loading import load_scenario

HOSTS = ["h0", "h1", "h2", "h3"]


def scenario(path: Path, workload: dict[str, Any]) -> Path:
    job = {"name": "job", "hosts": HOSTS, "gpus_per_host": 1, "iterations": 2, "workload": workload}
    topology = {"kind": "star", "hosts": 4, "host_link_gbps": 100}
    path.write_text(yaml.safe_dump({"name": "s", "topology": topology, "jobs": [job]}), encoding="utf-8")
    return path


@pytest.mark.parametrize(
    "workload",
    [
        {"type": "phases", "compute_s": 0.05, "comm_start": 0.5, "bytes": 1e9, "pattern": "ring"},
        {"type": "pp", "model": "gpt", "micro_batches": 3},
        {"type": "fsdp", "model": "bert", "layer_groups": 4},
    ],
)
def test_an_exported_job_is_the_same_when_it_is_imported(tmp_path: Path, workload: dict[str, Any]) -> None:
    path = scenario(tmp_path / "own.yaml", workload)
    own = load_scenario(path)
    (job,) = training_jobs(own, own.topology.build())
    write_trace(job.graph, HOSTS, tmp_path / "exported")
    again = scenario(tmp_path / "again.yaml", {"type": "chakra", "trace": "exported", "in_order": False})
    imported = load_scenario(again)
    (other,) = training_jobs(imported, imported.topology.build())
    assert other.graph.computing_host_seconds == pytest.approx(job.graph.computing_host_seconds, rel=1e-4)
    sent = [sum(flow.size_bytes for group in each.graph.flow_groups for flow in group.flows) for each in (job, other)]
    assert sent[1] == pytest.approx(sent[0])
    times_s = [
        ty.run(each, on="simulator", policy="ecmp", progress=False).jobs[0].iteration_time_s for each in (path, again)
    ]
    assert times_s[1] == pytest.approx(times_s[0], rel=1e-4)
