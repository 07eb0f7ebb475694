"""A scenario runs on real hosts: TCP between namespaces, over the emulator, under the controller."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from random import Random
from typing import Any

import pytest
import yaml

from tests.docs.pages import ROOT
from tests.patience import PATIENCE_S
from tests.topologies.made_up import made_up
from topologies.namespaces.fabric_namespaces import FabricNamespaces
from topologies.namespaces.host_network import NetworkError
from topologies.specification import ClosSpecification, StarSpecification

pytestmark = pytest.mark.slow

_TWO_JOBS: dict[str, Any] = {
    "name": "two-jobs",
    "topology": {
        "kind": "clos",
        "tors": 2,
        "aggs": 2,
        "hosts_per_tor": 2,
        "nics_per_host": 2,
        "gpus_per_host": 2,
        "host_link_gbps": 100,
        "uplink_gbps": 100,
    },
    "jobs": [
        {
            "name": name,
            "hosts": hosts,
            "gpus_per_host": 2,
            "iterations": 4,
            "workload": {"type": "phases", "compute_s": 0.2, "comm_start": 0.5, "bytes": size_bytes, "pattern": "ring"},
        }
        for name, hosts, size_bytes in (("small", ["h0", "h2"], 1e9), ("large", ["h1", "h3"], 3e9))
    ],
}


@pytest.fixture(autouse=True)
def _needs_namespaces() -> None:
    star = StarSpecification(kind="star", hosts=1, gpus_per_host=1, nics_per_host=1, host_link_gbps=1)
    try:
        with FabricNamespaces(star.build()):
            pass
    except NetworkError as error:
        pytest.skip(f"no scenario is run on real hosts: {error}")


def _run(scenario: Path, *options: str, back_end: str = "namespaces") -> dict[str, Any]:
    command = (sys.executable, "-m", "trainyard", "run", str(scenario), "--on", back_end, "--json", *options)
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=2 * PATIENCE_S, check=False)
    assert done.returncode == 0, done.stderr
    return dict(json.loads(done.stdout))


def _written(tmp_path: Path, document: dict[str, Any]) -> Path:
    path = tmp_path / "scenario.yaml"
    path.write_text(yaml.safe_dump(document))
    return path


def test_stand_in_jobs_take_no_less_than_their_links_allow(tmp_path: Path) -> None:
    trace = tmp_path / "run.json"
    result = _run(_written(tmp_path, _TWO_JOBS), "--policy", "crux", "--perfetto", str(trace))
    assert result["backend"] == "namespaces"
    for job in result["jobs"]:
        assert job["failure"] is None
        assert job["iteration_time_s"] > 0.97 * job["ideal_iteration_time_s"]
        assert job["jct_s"] > 3.9 * job["ideal_iteration_time_s"]
    assert {job["level"] for job in result["jobs"]} == {6, 7}, "crux ranks the jobs"
    names = {event.get("name") for event in json.loads(trace.read_text())["traceEvents"]}
    assert {"iteration 0", "iteration 3"} <= names


def test_a_link_that_fails_is_avoided(tmp_path: Path) -> None:
    events = [
        {"at_s": 0.5, "link": ["t0", "a0"], "state": "down"},
        {"at_s": 0.8, "link": ["t0", "a0"], "state": "up"},
    ]
    result = _run(_written(tmp_path, _TWO_JOBS | {"events": events, "probes": True}), "--policy", "crux")
    assert [job["failure"] for job in result["jobs"]] == [None, None]
    assert len(result["stretches"]) == 3


def test_a_program_of_ones_own_runs_beside_a_stand_in_job() -> None:
    result = _run(ROOT / "docs/examples/command-job.yaml")
    jobs = {job["name"]: job for job in result["jobs"]}
    assert [job["failure"] for job in jobs.values()] == [None, None]
    assert jobs["own-program"]["iteration_time_s"] >= 0.2
    assert jobs["stand-in"]["iteration_time_s"] >= 0.4


def test_a_program_that_fails_is_named_and_others_go_on(tmp_path: Path) -> None:
    jobs = [dict(job) for job in _TWO_JOBS["jobs"]]
    jobs[0]["workload"] = jobs[0]["workload"] | {"type": "command", "command": ["sh", "-c", "echo no GPU; exit 3"]}
    result = _run(_written(tmp_path, _TWO_JOBS | {"jobs": jobs}))
    failed, other = result["jobs"]
    assert "has ended with status 3: no GPU" in failed["failure"]
    assert (failed["jct_s"], other["failure"]) == (None, None)
    assert other["jct_s"] > 0
    assert other["iteration_time_s"] is not None, "it is measured to its own end"


def test_mininets_hosts_run_the_same_scenario(tmp_path: Path) -> None:
    if os.geteuid() != 0 or shutil.which("mnexec") is None:
        pytest.skip("no scenario is run on Mininet's hosts: needs root and Debian's mininet")
    result = _run(_written(tmp_path, _TWO_JOBS), back_end="mininet")
    assert result["backend"] == "mininet"
    for job in result["jobs"]:
        assert job["failure"] is None
        assert job["iteration_time_s"] > 0.97 * job["ideal_iteration_time_s"]


@pytest.mark.parametrize("back_end", ["namespaces", "mininet"])
def test_a_fabric_is_run_as_it_is(back_end: str, tmp_path: Path) -> None:
    """Names are too long for interfaces, and a NIC has no MAC."""
    if back_end == "mininet" and (os.geteuid() != 0 or shutil.which("mnexec") is None):
        pytest.skip("no scenario is run on Mininet's hosts: needs root and Debian's mininet")
    regular = ClosSpecification.model_validate(_TWO_JOBS["topology"]).build()
    other = made_up(regular, Random(1), suffix=".second-hall")
    topology = other.specification.model_dump(mode="json")
    topology["hosts"][0]["nics"][0]["mac"] = None
    jobs = [dict(job) | {"hosts": [other.names[host] for host in job["hosts"]]} for job in _TWO_JOBS["jobs"]]
    scenario = _TWO_JOBS | {"topology": topology, "jobs": jobs, "probes": True}
    result = _run(_written(tmp_path, scenario), back_end=back_end)
    assert [job["failure"] for job in result["jobs"]] == [None, None]
    assert all(job["jct_s"] > 0 for job in result["jobs"])


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"steering": "source_port"}, "steering: the connections of real programs keep their source ports"),
        (
            {"events": [{"at_s": 1, "switch": "t0", "state": "down"}, {"at_s": 2, "switch": "t0", "state": "up"}]},
            "events[0].switch: a switch cannot be taken down under real hosts",
        ),
    ],
)
def test_what_real_hosts_cannot_do_is_refused(tmp_path: Path, change: dict[str, Any], message: str) -> None:
    path = _written(tmp_path, _TWO_JOBS | change)
    command = (sys.executable, "-m", "trainyard", "run", str(path), "--on", "namespaces")
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=PATIENCE_S, check=False)
    assert done.returncode == 2
    assert message in done.stderr
