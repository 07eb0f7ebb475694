"""A sweep on a Ray cluster of one machine, which runs beside the test."""

import importlib.util
import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

from tests.experiments.sweeps.builders import write
from tests.patience import PATIENCE_S
from tests.ports import free_port

_READY = "Ray runtime started."


@pytest.fixture(scope="module")
def address() -> Iterator[str]:
    if importlib.util.find_spec("ray") is None:
        pytest.skip(
            "ray is not installed (the extra [ray]): that a sweep over a cluster gives what processes give is not "
            "checked here"
        )
    port = free_port()
    # A short path, as there are sockets below it.
    with TemporaryDirectory(prefix="ray") as folder:
        head = subprocess.Popen(
            [
                *(Path(sys.executable).with_name("ray"), "start", "--head", "--block", "--disable-usage-stats"),
                *("--node-ip-address", "127.0.0.1", "--port", str(port), "--num-cpus", "2"),
                *("--object-store-memory", "100000000", "--include-dashboard", "false", "--temp-dir", folder),
            ],
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        try:
            assert head.stdout is not None
            said = ""
            for line in head.stdout:
                said += line
                if _READY in line:
                    break
            assert _READY in said, said
            yield f"127.0.0.1:{port}"
        finally:
            head.terminate()
            head.communicate(timeout=PATIENCE_S)


def test_a_cluster_gives_the_same_results_as_processes(address: str, tmp_path: Path) -> None:
    scenario = write(tmp_path)
    command = [sys.executable, "-m", "trainyard", "sweep", str(scenario), "--policy", "ecmp", "--policy", "crux"]
    outputs = []
    for name, options in (("processes", ["--workers", "1"]), ("ray", ["--address", address])):
        outputs.append(tmp_path / name)
        ended = subprocess.run(
            [*command, "--seeds", "2", "--set", "reaction_delay_s=0,1", "--out", str(outputs[-1]), *options],
            capture_output=True,
            text=True,
            check=False,
        )
        assert ended.returncode == 0, ended.stderr
    processes, ray = ([json.loads(line) for line in output.read_text().splitlines()] for output in outputs)
    assert len(processes) == 8
    assert sorted(map(json.dumps, processes)) == sorted(map(json.dumps, ray))
