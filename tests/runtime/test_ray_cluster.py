"""Islands on a real Ray cluster of two nodes, with faults."""

import json
import os
import subprocess
import sys
from pathlib import Path
from threading import Timer

import numpy as np
import pytest

from benchmarks.runtime_peers import RAY_ON_LOOPBACK
from runtime.substrates.interface import SubstrateError
from runtime.substrates.ray_cluster import RaySettings, RaySubstrate
from tests.interpreters import interpreter_with, packages_of

_ROOT = Path(__file__).resolve().parents[2]
_START_S = 60.0
_MOST_S = 300.0


SCENARIOS = (
    *("programs", "machines", "groups", "objects", "example", "served", "refused", "membership"),
    *("by_hand", "gpus"),
    *("killed_actor", "dead_node", "silent_node", "killed_server"),
)


@pytest.mark.slow
def test_islands_on_a_ray_cluster(subtests: pytest.Subtests) -> None:
    """One cluster plays all scenarios (``tests/runtime/ray_scenarios.py``): to start it takes ten processes."""
    packages = packages_of(interpreter_with("ray", "2.60.0", "ray", f"numpy=={np.__version__}"))
    process = subprocess.Popen(
        [sys.executable, str(Path(__file__).with_name("ray_scenarios.py"))],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        env={**os.environ, **RAY_ON_LOOPBACK, "PYTHONPATH": f"{_ROOT}{os.pathsep}{packages}"},
    )
    assert process.stdin is not None
    assert process.stdout is not None
    with process, process.stdin, process.stdout:
        if not _answer(process, _START_S):
            pytest.skip(f"Ray does not start here within {_START_S:g} s; islands on Ray are not tried")
        for scenario in SCENARIOS:
            with subtests.test(scenario):
                process.stdin.write(f"{scenario}\n")
                process.stdin.flush()
                answer = _answer(process, _MOST_S)
                assert answer, "the process with the cluster has ended; what it said is above"
                assert json.loads(answer) is None, json.loads(answer)


def _answer(process: "subprocess.Popen[str]", most_s: float) -> str:
    """Return a line of a process, which is killed where there is none after so many seconds."""
    assert process.stdout is not None
    hangs = Timer(most_s, process.kill)
    hangs.start()
    try:
        return process.stdout.readline()
    finally:
        hangs.cancel()


def test_without_ray_the_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "ray", None)
    with pytest.raises(SubstrateError, match=r"needs Ray, as pip install '.\[ray\]' brings it"):
        RaySubstrate(RaySettings(), {})


@pytest.mark.parametrize(
    ("asked", "says"),
    [
        ({"address": "ray://head:10001"}, "start the program on a node of the cluster"),
        ({"strategy": "SCATTER"}, "strategy: expected one of PACK, SPREAD, STRICT_PACK, STRICT_SPREAD, got 'SCATTER'"),
        ({"cpus_per_device": 0.0}, "cpus_per_device: expected a number above 0, got 0.0"),
        ({"resources": {"fast": -1.0}}, "resources: fast: expected a number above 0, got -1.0"),
        ({"resources": {"CPU": 1.0}}, "resources: CPU: cpus_per_device says it"),
        ({"patience_s": 0.0}, "patience_s: expected a time above 0, got 0.0"),
    ],
)
def test_settings_are_refused_by_name(asked: dict[str, object], says: str) -> None:
    with pytest.raises(ValueError, match=says):
        RaySettings(**asked)  # type: ignore[arg-type]
