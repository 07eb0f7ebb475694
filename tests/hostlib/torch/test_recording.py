"""A job records an iteration of each rank while it trains, and the recording can be played."""

import json
from pathlib import Path

import pytest

import trainyard as ty
from tests.hostlib.torch.gloo_ranks import run_ranks
from workloads.chakra.folders import read_trace
from workloads.chakra.joining import TraceCollective, TraceComputation
from workloads.chakra.wire import CollectiveType

GRADIENT_BYTES = 4 * (512 * 512 + 512) * 4


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where two ranks have recorded an iteration of DDP."""
    folder = tmp_path_factory.mktemp("recorded")
    with pytest.MonkeyPatch.context() as patched:
        patched.setenv("RECORDED_TO", str(folder / "traces"))
        run_ranks("programs.record_ddp", 2, folder)
    return folder / "traces"


def test_what_a_job_of_two_ranks_records(folder: Path) -> None:
    trace = read_trace(folder)
    reductions = [task for task in trace.tasks if isinstance(task, TraceCollective)]
    assert {(task.type, task.ranks) for task in reductions} == {(CollectiveType.ALL_REDUCE, (0, 1))}
    assert sum(task.size_bytes for task in reductions) == GRADIENT_BYTES
    for rank in (0, 1):
        lines = [json.loads(line) for line in (folder / f"trace.{rank}.jsonl").read_text().splitlines()]
        stalled_s = sum(line["end_s"] - line["begin_s"] for line in lines if "waits_for" in line)
        computed_s = sum(
            task.duration_s for task in trace.tasks if isinstance(task, TraceComputation) and task.rank == rank
        )
        assert computed_s == pytest.approx(lines[0]["duration_s"] - stalled_s, abs=5e-6)


def test_a_played_iteration_takes_longer_where_the_network_is_slow(folder: Path) -> None:
    fast_s, slow_s = (_played_s(folder, gbps) for gbps in (1000.0, 0.1))
    trace = read_trace(folder)
    computed_s = max(
        sum(task.duration_s for task in trace.tasks if isinstance(task, TraceComputation) and task.rank == rank)
        for rank in (0, 1)
    )
    assert computed_s <= fast_s + 1e-5
    # A ring of two sends all gradients once in each direction.
    assert slow_s >= GRADIENT_BYTES * 8 / 0.1e9
    assert slow_s > fast_s


def _played_s(folder: Path, gbps: float) -> float:
    workload = ty.ChakraWorkload(type="chakra", trace=str(folder))
    job = ty.JobSpecification(name="job", hosts=("h0", "h1"), gpus_per_host=1, iterations=2, workload=workload)
    topology = ty.StarSpecification(kind="star", hosts=2, host_link_gbps=gbps)
    scenario = ty.build_scenario(ty.Scenario(name="played", topology=topology, jobs=(job,)))
    (run,) = ty.run(scenario, "ecmp", on="simulator", progress=False).jobs
    assert run.iteration_time_s is not None
    return run.iteration_time_s
