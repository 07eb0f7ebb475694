"""A scenario runs on real hosts over Open vSwitch, which the real controller programs by OpenFlow."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.docs.pages import ROOT
from tests.openvswitch import skip_without_openvswitch
from tests.patience import PATIENCE_S
from tests.topologies.namespaces.conftest import skip_unless_permitted

pytestmark = pytest.mark.slow

_SCENARIO: dict[str, Any] = {
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
    "jobs": [
        {
            "name": name,
            "hosts": hosts,
            "gpus_per_host": 1,
            "iterations": 4,
            "workload": {"type": "phases", "compute_s": 0.2, "comm_start": 0.5, "bytes": size_bytes, "pattern": "ring"},
        }
        for name, hosts, size_bytes in (("small", ["h0", "h2"], 1e9), ("large", ["h1", "h3"], 3e9))
    ],
    "scale": 4000,
}


def _run(scenario: Path, *options: str) -> subprocess.CompletedProcess[str]:
    command = (sys.executable, "-m", "trainyard", "run", str(scenario), "--policy", "crux", "--json", *options)
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=2 * PATIENCE_S, check=False)


def _written(tmp_path: Path, document: dict[str, Any]) -> Path:
    path = tmp_path / "scenario.yaml"
    path.write_text(yaml.safe_dump(document))
    return path


@pytest.mark.parametrize("back_end", ["namespaces", "mininet"])
def test_jobs_run_to_their_end_though_a_cable_is_cut(back_end: str, tmp_path: Path) -> None:
    skip_without_openvswitch()
    skip_unless_permitted(())
    if back_end == "mininet" and (os.geteuid() != 0 or shutil.which("mnexec") is None):
        pytest.skip("no scenario is run on Mininet's hosts: needs root and Debian's mininet")
    events = [
        {"at_s": 0.5, "link": ["t0", "a0"], "state": "down"},
        {"at_s": 1.5, "link": ["t0", "a0"], "state": "up"},
    ]
    done = _run(_written(tmp_path, _SCENARIO | {"events": events}), "--on", back_end, "--switch", "ovs")
    assert done.returncode == 0, done.stderr
    result = json.loads(done.stdout)
    assert result["backend"] == back_end
    assert [job["failure"] for job in result["jobs"]] == [None, None]
    assert max(job["level"] for job in result["jobs"]) == 7, "the controller has planned"
    for job in result["jobs"]:
        assert job["iteration_time_s"] > 0.97 * job["ideal_iteration_time_s"]


@pytest.mark.parametrize(
    ("options", "changes", "problem"),
    [
        (("--on", "emulator"), {}, "--switch ovs: expected --on namespaces or mininet, got --on emulator"),
        (("--on", "namespaces", "--real-time"), {}, "--real-time: only the emulator asks for it"),
        (("--on", "namespaces"), {"probes": True}, "probes: Open vSwitch writes no in-band telemetry"),
    ],
)
def test_what_open_vswitch_cannot_do_is_refused_by_name(
    options: tuple[str, ...], changes: dict[str, Any], problem: str, tmp_path: Path
) -> None:
    done = _run(_written(tmp_path, _SCENARIO | changes), "--switch", "ovs", *options)
    assert (done.returncode, done.stdout) == (2, "")
    assert problem in done.stderr
