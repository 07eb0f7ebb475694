"""PyTorch jobs train over gloo between namespaces, each fails alone, and nothing of them outlives the run."""

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
import yaml

from benchmarks.real_hosts.processes import descendants, start_of
from experiments.scenarios.backend import Backend, real_hosts
from tests.docs.pages import ROOT
from tests.patience import PATIENCE_S
from topologies.namespaces.fabric_namespaces import FabricNamespaces
from topologies.namespaces.host_network import NetworkError
from topologies.specification import StarSpecification
from workloads.scenario import Scenario

pytestmark = pytest.mark.slow

_WITHOUT_ROOT = ("unshare", "--user", "--map-user=1000", "--map-group=1000")
_COMPUTE_S = 0.2
_DDP = {
    "type": "torch",
    "parallelism": "ddp",
    "parameter_bytes": 1e9,
    "layers": 2,
    "compute_s": _COMPUTE_S,
}
_FOUR_ITERATIONS_BYTES = 4 * 1e9 / 500
"""At the rates of real hosts."""
_PROFILER_S = 0.05
"""By so much the times of the profiler may be off."""
_TWO_JOBS: dict[str, Any] = {
    "name": "two-torch-jobs",
    "topology": {
        "kind": "dumbbell",
        "hosts_per_side": 2,
        "gpus_per_host": 1,
        "host_link_gbps": 100,
        "bottleneck_gbps": 100,
    },
    "jobs": [
        {"name": name, "hosts": hosts, "gpus_per_host": 1, "iterations": 5, "workload": _DDP}
        for name, hosts in (("one", ["h0", "h2"]), ("other", ["h1", "h3"]))
    ],
}


@pytest.fixture(autouse=True)
def _needs_namespaces_and_torch() -> None:
    pytest.importorskip("torch", reason="no PyTorch job is run: make torch installs PyTorch")
    star = StarSpecification(kind="star", hosts=1, gpus_per_host=1, nics_per_host=1, host_link_gbps=1)
    try:
        with FabricNamespaces(star.build()):
            pass
    except NetworkError as error:
        pytest.skip(f"no PyTorch job is run on real hosts: {error}")


@contextmanager
def _running(
    tmp_path: Path, document: dict[str, Any], *, start: tuple[str, ...] = (), back_end: str = "namespaces"
) -> Iterator[subprocess.Popen[str]]:
    scenario = tmp_path / "scenario.yaml"
    scenario.write_text(yaml.safe_dump(document))
    command = (*start, sys.executable, "-m", "trainyard", "run", str(scenario), "--on", back_end, "--json")
    with subprocess.Popen(
        command, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True
    ) as run:
        try:
            yield run
        finally:
            run.kill()


def _jobs(run: subprocess.Popen[str]) -> dict[str, dict[str, Any]]:
    printed, complaint = run.communicate(timeout=PATIENCE_S)
    assert run.returncode == 0, complaint
    return {job["name"]: job for job in json.loads(printed)["jobs"]}


def _rank(run: subprocess.Popen[str], rank: int, job: str) -> int | None:
    """The process of a rank, by the name that ``ps`` shows."""
    return next((pid for pid in descendants(run.pid) if _name_of(pid) == f"rank {rank} {job}"), None)


def _name_of(pid: int) -> str | None:
    try:
        return Path(f"/proc/{pid}/comm").read_text().strip()
    except OSError:
        return None


def _wait_until(holds: Callable[[], bool], run: subprocess.Popen[str] | None = None) -> None:
    deadline_s = time.monotonic() + PATIENCE_S
    while not holds():
        assert time.monotonic() < deadline_s
        assert run is None or run.poll() is None, run.communicate()[1]
        time.sleep(0.05)


@pytest.mark.parametrize("hosts", ["namespaces", "namespaces without root", "mininet"])
def test_two_jobs_train_for_their_iterations(tmp_path: Path, hosts: str) -> None:
    is_root = os.geteuid() == 0
    if hosts == "mininet" and not (is_root and shutil.which("mnexec")):
        pytest.skip("no PyTorch job is run on Mininet's hosts: needs root and Debian's mininet")
    start = _WITHOUT_ROOT if is_root and hosts.endswith("without root") else ()
    if start and subprocess.run([*start, "true"], check=False, capture_output=True).returncode:
        pytest.skip("no PyTorch job is run without root: the machine permits no user namespaces")
    with _running(tmp_path, _TWO_JOBS, start=start, back_end=hosts.split()[0]) as run:
        jobs = _jobs(run)
    for job in jobs.values():
        assert job["failure"] is None
        assert job["iteration_time_s"] > 0.97 * job["ideal_iteration_time_s"], "bytes are really sent"
        assert job["jct_s"] > 4.9 * job["ideal_iteration_time_s"], "all five iterations"


@pytest.mark.parametrize("computation", ["stand_in", "real"])
def test_every_parallelism_trains(tmp_path: Path, computation: str) -> None:
    others = {
        "fsdp": {"parameter_bytes": 1e9, "layers": 2},
        "pipeline": {"activation_bytes": 5e8, "micro_batches": 2},
        "moe": {"activation_bytes": 5e8, "layers": 1},
    }
    star = {"kind": "star", "hosts": 6, "gpus_per_host": 1, "host_link_gbps": 100}
    jobs = [
        {
            "name": kind,
            "hosts": [f"h{2 * number}", f"h{2 * number + 1}"],
            "gpus_per_host": 1,
            "iterations": 2,
            "workload": {"type": "torch", "parallelism": kind, "compute_s": 0.1, "computation": computation} | keys,
        }
        for number, (kind, keys) in enumerate(others.items())
    ]
    with _running(tmp_path, {"name": "every-parallelism", "topology": star, "jobs": jobs}) as run:
        assert {name: job["failure"] for name, job in _jobs(run).items()} == dict.fromkeys(others)


def test_a_job_fails_with_a_rank_and_says_how_and_the_other_goes_on(tmp_path: Path) -> None:
    jobs = [job | {"iterations": 20} for job in _TWO_JOBS["jobs"]]
    with _running(tmp_path, _TWO_JOBS | {"jobs": jobs}) as run:
        _wait_until(
            lambda: (pid := _rank(run, 1, "one")) is not None and _sent_bytes(pid) > _FOUR_ITERATIONS_BYTES, run
        )
        victim = _rank(run, 1, "one")
        assert victim is not None
        os.kill(victim, signal.SIGKILL)
        result = _jobs(run)
    failure = result["one"]["failure"]
    assert "the rank at h2 has ended with status 137" in failure
    assert "the rank at h0 has ended with status 1" in failure
    assert "Connection closed by peer" in failure, "what PyTorch says"
    assert result["other"]["failure"] is None
    assert result["other"]["jct_s"] > 19.9 * result["other"]["ideal_iteration_time_s"]


def test_all_ranks_end_with_a_run_that_is_killed(tmp_path: Path) -> None:
    with _running(tmp_path, _TWO_JOBS) as run:
        _wait_until(lambda: _rank(run, 1, "other") is not None, run)
        started = {pid: start_of(pid) for pid in descendants(run.pid)[1:]}
        run.kill()
        run.wait()
        _wait_until(lambda: all(start_of(pid) is None or start_of(pid) != at for pid, at in started.items()))


def _sent_bytes(pid: int) -> int:
    """What the host of a process has sent, 0 before it has entered it."""
    lines = Path(f"/proc/{pid}/net/dev").read_text().splitlines()
    rows = {name.strip(): row.split() for name, _, row in (line.partition(":") for line in lines)}
    return int(rows["eth0"][8]) if "eth0" in rows else 0


def test_the_same_ranks_train_under_one_policy_after_the_other() -> None:
    from experiments.scenarios.real_hosts.profiled_step import PROFILED_OF

    jobs = [job | {"iterations": PROFILED_OF} for job in _TWO_JOBS["jobs"]]
    scenario = Scenario.model_validate(_TWO_JOBS | {"jobs": jobs})
    pids: list[int] = []
    with real_hosts(Backend.NAMESPACES, scenario, is_real_time=False, keeps_ranks=True) as run:
        for policy in ("ecmp", "crux"):
            result = run(policy, on_progress=lambda _now_s, _end_s: None)
            assert result.policy == policy
            assert [(job.failure, len(job.iterations)) for job in result.jobs] == [(None, PROFILED_OF)] * 2
            collectives = {each.group for job in result.jobs for each in job.communicating}
            assert collectives == {"all-reduce 0", "all-reduce 1"}, "as the ranks have seen them"
            for job in result.jobs:
                iteration, profiled = job.iterations[-1], job.profiled
                assert "DistributedDataParallel.forward" in {each.name for each in profiled}
                assert all(
                    iteration.start_s <= each.start_s < each.end_s <= iteration.end_s + _PROFILER_S for each in profiled
                )
            pids.append(next(pid for pid in descendants(os.getpid()) if _name_of(pid) == "rank 0 one"))
    assert pids[0] == pids[1]
    assert not Path(f"/proc/{pids[0]}").exists()
