"""Profiles of PyTorch are played as they were recorded, and what is wrong in them is named by file, rank and node."""

import gzip
import json
import os
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from tests.workloads.pytorch_traces.documents import Event, all_reduce, event, kernel, write
from workloads.chakra.folders import read_trace
from workloads.chakra.joining import Trace, TraceCollective, TraceComputation
from workloads.chakra.rank_trace import Unit
from workloads.chakra.wire import ChakraError, CollectiveType


def computed_s(trace: Trace, rank: int, unit: Unit) -> float:
    return sum(
        task.duration_s
        for task in trace.tasks
        if isinstance(task, TraceComputation) and task.rank == rank and task.unit is unit
    )


def collectives(trace: Trace) -> list[TraceCollective]:
    return [task for task in trace.tasks if isinstance(task, TraceCollective)]


def waits_for(trace: Trace, task: int, earlier: int) -> bool:
    return any(each == earlier or waits_for(trace, each, earlier) for each in trace.tasks[task].after)


def overlapped_step() -> list[Event]:
    """Backward computes beside a reduction that has long ended when the optimizer begins."""
    return [
        event("cpu_op", "aten::mm", 0, 10),
        *kernel(1, 5, 20, 100),
        *all_reduce(2, 30, 121, 50, elements=1000),
        *kernel(3, 60, 130, 400),
        event("user_annotation", "Optimizer.step#SGD.step", 200, 300),
        *kernel(4, 210, 540, 70),
    ]


def test_kernels_launches_and_collectives_of_a_gpu(tmp_path: Path) -> None:
    trace = read_trace(write(tmp_path / "p", overlapped_step(), overlapped_step()))
    (reduction,) = collectives(trace)
    assert (reduction.type, reduction.ranks, reduction.size_bytes) == (CollectiveType.ALL_REDUCE, (0, 1), 4000)
    for rank in (0, 1):
        assert computed_s(trace, rank, Unit.GPU) == pytest.approx(570e-6)
        # From the first operation to the end of the last launch.
        assert computed_s(trace, rank, Unit.CPU) == pytest.approx(215e-6)


def test_the_optimizer_waits_for_reductions_that_had_ended_long_before(tmp_path: Path) -> None:
    trace = read_trace(write(tmp_path / "p", overlapped_step(), overlapped_step()))
    reduction = trace.tasks.index(collectives(trace)[0])
    durations = {
        round(task.duration_s * 1e6): number
        for number, task in enumerate(trace.tasks)
        if isinstance(task, TraceComputation) and task.unit is Unit.GPU and task.rank == 0
    }
    assert waits_for(trace, durations[70], reduction)
    assert not waits_for(trace, durations[400], reduction)
    assert waits_for(trace, reduction, durations[100])


def test_the_cpu_waits_where_it_synchronizes(tmp_path: Path) -> None:
    step = [
        event("cpu_op", "aten::mm", 0, 10),
        *kernel(1, 5, 10, 1000),
        event("cuda_runtime", "cudaStreamSynchronize", 20, 995),
        *kernel(2, 1020, 1030, 10),
    ]
    trace = read_trace(write(tmp_path / "p", step))
    # What it waits is no work of its own: 20 µs before, 10 µs behind.
    assert computed_s(trace, 0, Unit.CPU) == pytest.approx(30e-6)
    last, first = (
        len(trace.tasks) - 1,
        next(
            number
            for number, task in enumerate(trace.tasks)
            if isinstance(task, TraceComputation) and task.duration_s > 9e-4
        ),
    )
    assert waits_for(trace, last, first)


def test_what_older_versions_record_by_shapes(tmp_path: Path) -> None:
    step = [
        event("cpu_op", "record_param_comms", 0, 50, **{"Input Dims": [[]], "Input type": ["TensorList"]}),
        event("user_annotation", "nccl:all_to_all", 2, 40, **{"Input Dims": [[64, 8]], "Input type": ["c10::Half"]}),
        *kernel(1, 10, 30, 60, 20, "ncclKernel_SendRecv_RING_SIMPLE_Sum_int8_t"),
    ]
    (found,) = collectives(read_trace(write(tmp_path / "p", step, step)))
    assert (found.type, found.size_bytes) == (CollectiveType.ALL_TO_ALL, 1024)


def gloo_step() -> list[Event]:
    sizes = {"Input Dims": [[250]], "Input type": ["float"]}
    return [
        event("user_annotation", "ProfilerStep#1", 0, 1000),
        event("cpu_op", "aten::mm", 0, 100),
        event("cpu_op", "c10d::allreduce_", 100, 20, **{"Input Dims": [[[250]]], "Input type": ["TensorList"]}),
        event("user_annotation", "gloo:all_reduce", 110, 590, 2, **sizes),
        event("cpu_op", "aten::mm", 120, 180),
        event("cpu_op", "aten::copy_", 720, 30),
        event("user_annotation", "Optimizer.step#SGD.step", 800, 100),
        event("cpu_op", "aten::add_", 810, 80),
    ]


def test_a_rank_without_a_gpu_waits_where_nothing_runs_and_gloo_ends(tmp_path: Path) -> None:
    trace = read_trace(write(tmp_path / "p", gloo_step(), gloo_step()))
    (found,) = collectives(trace)
    assert (found.type, found.size_bytes) == (CollectiveType.ALL_REDUCE, 1000)
    # Of 1000 µs, 400 from the end of the second product to that of the reduction are waiting.
    assert computed_s(trace, 0, Unit.GPU) == pytest.approx(600e-6)
    assert waits_for(trace, len(trace.tasks) - 1, trace.tasks.index(found))


def test_what_runs_on_another_thread_does_not_hide_that_an_operation_has_others_within_it(tmp_path: Path) -> None:
    step = gloo_step()
    # It has nothing of its own from 310 to 720 µs; between its begin and its parts another thread does something.
    step += [event("cpu_op", "outer", 300, 460), event("cpu_op", "aten::mul", 302, 3, 3), event("cpu_op", "in", 305, 5)]
    trace = read_trace(write(tmp_path / "p", step, step))
    # The reduction is waited for from 310 to 700 µs.
    assert computed_s(trace, 0, Unit.GPU) == pytest.approx(610e-6)


def test_an_execution_trace_says_what_the_profile_does_not(tmp_path: Path) -> None:
    step = gloo_step()
    for each in step:
        each["args"] = {"Record function id": 40} if each["name"].startswith("gloo") else {}
    with pytest.raises(ChakraError, match="nothing says what it moves"):
        read_trace(write(tmp_path / "p", step, step))
    node = {
        "id": 9,
        "name": "gloo:all_reduce",
        "inputs": {"values": [[1, 2, 0, 250, 4, "cpu"]]},
        "attrs": [{"name": "rf_id", "value": 40}],
    }
    for rank in (0, 1):
        text = json.dumps({"schema": "1.1.1-chakra.0.0.4", "nodes": [node]})
        (tmp_path / "p" / f"et.{rank}.json").write_text(text)
    (found,) = collectives(read_trace(tmp_path / "p"))
    assert (found.type, found.size_bytes) == (CollectiveType.ALL_REDUCE, 1000)
    (tmp_path / "p" / "et.1.json").write_text('{"schema": "1.1.1-chakra.0.0.4", "nodes": [{"id": 3}')
    with pytest.raises(ChakraError, match=r"et\.1\.json: rank 1: is truncated, or no JSON"):
        read_trace(tmp_path / "p")


def test_packed_profiles_and_ranks_in_names(tmp_path: Path) -> None:
    for rank in (0, 1):
        content = json.dumps({"traceEvents": overlapped_step()}).encode()
        (tmp_path / f"rank{rank}.json.gz").write_bytes(gzip.compress(content))
    assert read_trace(tmp_path).num_ranks == 2


def without(key: str) -> Callable[[list[Event]], None]:
    def change(events: list[Event]) -> None:
        del events[2]["args"][key]

    return change


def set_to(number: int, key: str, value: Any) -> Callable[[list[Event]], None]:
    def change(events: list[Event]) -> None:
        (events[number]["args"] if key[0].isupper() or key == "dtype" else events[number])[key] = value

    return change


@pytest.mark.parametrize(
    ("change", "problem"),
    [
        (set_to(0, "dur", -3), "rank 1, node 0: its duration is -3 µs"),
        (set_to(0, "ts", "soon"), "rank 1, node 0: ts is 'soon'"),
        (set_to(0, "ts", 10**400), "rank 1, node 0: ts is '1000"),
        (without("correlation"), "rank 1, node 2: 'gemm' has no correlation"),
        (set_to(4, "dtype", "Quaternion"), "rank 1, node 4: its dtype is 'Quaternion', which is unknown"),
        (set_to(4, "In msg nelems", -1), "rank 1, node 4: its numbers of elements are -1 and 1000"),
        (set_to(4, "In msg nelems", 2**70), "rank 1, node 4: cannot be played: 'Value out of range"),
        (set_to(4, "Process Group Name", "\ud800"), "rank 1, node 4: cannot be played: \"'utf-8' codec"),
        (set_to(4, "Collective name", "gossip"), "rank 1, node 4: its collective is 'gossip', which is unknown"),
        (set_to(4, "In msg nelems", 7), "rank 1, node 4: its size is 28, but 4000 on rank 0, node 4"),
    ],
)
def test_what_is_wrong_is_named(tmp_path: Path, change: Callable[[list[Event]], None], problem: str) -> None:
    changed = overlapped_step()
    change(changed)
    with pytest.raises(ChakraError) as raised:
        read_trace(write(tmp_path / "p", overlapped_step(), changed))
    assert problem in str(raised.value)
    assert "host_8.pt.trace.json" in str(raised.value)


def with_nested_lists(folder: Path, depth: int) -> Path:
    step = gloo_step()
    step[3]["args"]["Input Dims"] = ["nested"]
    path = write(folder, step) / "host_7.pt.trace.json"
    path.write_text(path.read_text().replace('"nested"', "[" * depth + "250" + "]" * depth))
    return folder


def test_lists_that_are_nested_too_deeply(tmp_path: Path) -> None:
    with pytest.raises(ChakraError, match=r"host_7\.pt\.trace\.json: rank 0: .* no JSON: maximum recursion depth"):
        read_trace(with_nested_lists(tmp_path / "p", 100_000))
    # How deep is too deep for what comes behind JSON depends on the version of Python.
    for depth in (500, 700, 900):
        with suppress(ChakraError):
            read_trace(with_nested_lists(tmp_path / str(depth), depth))


def test_a_kernel_that_nothing_describes(tmp_path: Path) -> None:
    step = [event("cpu_op", "aten::mm", 0, 10), *kernel(1, 5, 10, 20, name="ncclDevKernel_AllReduce")]
    with pytest.raises(ChakraError, match=r"rank 0, node 2: .* nothing says what it moves; profile with record_shapes"):
        read_trace(write(tmp_path / "p", step))


@pytest.mark.parametrize(
    ("content", "problem"),
    [
        (b'{"traceEvents": [{"ph": "X"', "is truncated, or no JSON"),
        (b"[]", "is no profile of PyTorch"),
        (b'{"traceEvents": 3}', "traceEvents is no list"),
        (b'{"traceEvents": []}', "has no operations of CPUs or GPUs"),
        (b'{"schema": "1.1.1-chakra.0.0.4", "nodes": []}', "an execution trace has no durations"),
    ],
)
def test_files_that_cannot_be_used(tmp_path: Path, content: bytes, problem: str) -> None:
    (tmp_path / "trace.0.json").write_bytes(content)
    with pytest.raises(ChakraError) as raised:
        read_trace(tmp_path)
    assert "trace.0.json: rank 0" in str(raised.value)
    assert problem in str(raised.value)


@pytest.mark.parametrize("name", ["trace.0.json", "trace.0.json.gz", "trace.0.jsonl"])
def test_a_pipe_that_nobody_writes_is_given_up(tmp_path: Path, name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("topologies.files.PATIENCE_S", 0.05)
    os.mkfifo(tmp_path / name)
    with pytest.raises(ChakraError, match=rf"{name}: cannot be read: the pipe has been silent"):
        read_trace(tmp_path)


def test_packed_files_that_are_truncated(tmp_path: Path) -> None:
    (tmp_path / "trace.0.json.gz").write_bytes(gzip.compress(b'{"traceEvents": []}' * 99)[:-9])
    with pytest.raises(ChakraError, match=r"trace\.0\.json\.gz: is truncated, or not packed by gzip"):
        read_trace(tmp_path)


def test_two_files_of_one_rank(tmp_path: Path) -> None:
    (tmp_path / "a.0.json").write_text("{}")
    (tmp_path / "b.0.json").write_text("{}")
    with pytest.raises(ChakraError, match=r"b\.0\.json: is of rank 0, as 'a\.0\.json' is"):
        read_trace(tmp_path)
