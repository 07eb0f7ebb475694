"""Chakra traces: what ranks do becomes one graph, and whatever is wrong is named by file, rank and node."""

import json
import re
from pathlib import Path
from typing import Any

import pytest

from tests.workloads.chakra.builders import collective, compute, described_groups, receive, send, write
from workloads.chakra.expansion import expand_trace
from workloads.chakra.folders import read_trace
from workloads.chakra.joining import TraceCollective, TraceComputation
from workloads.chakra.rank_trace import Reading, Unit
from workloads.chakra.wire import ChakraError, CollectiveType, Metadata, framed
from workloads.placement import Placement
from workloads.task_graph import Computation, GroupTransfer, TaskGraph

REDUCE = CollectiveType.ALL_REDUCE


def graph_of(folder: Path, num_hosts: int, gpus_per_host: int = 1, nvlink_gbps: float | None = None) -> TaskGraph:
    hosts = [f"h{number}" for number in range(num_hosts)]
    gpus = tuple(range(gpus_per_host))
    return expand_trace(
        read_trace(folder), Placement(dict.fromkeys(hosts, gpus), dict.fromkeys(hosts, (0,))), nvlink_gbps
    )


def sent(graph: TaskGraph) -> dict[tuple[str, str], float]:
    found: dict[tuple[str, str], float] = {}
    for group in graph.flow_groups:
        for flow in group.flows:
            pair = (flow.source_host, flow.destination_host)
            found[pair] = found.get(pair, 0.0) + flow.size_bytes
    return found


def test_a_collective_waits_for_all_ranks_and_all_ranks_for_it(tmp_path: Path) -> None:
    ranks = [[compute(1, 100 + rank), collective(2, REDUCE, 1000, 1), compute(3, 50, 2)] for rank in range(2)]
    graph = graph_of(write(tmp_path, *ranks), 2)
    (transfer,) = (task for task in graph.tasks if isinstance(task, GroupTransfer))
    at = graph.tasks.index(transfer)
    assert sorted(graph.tasks[number].duration_s for number in transfer.after) == pytest.approx([100e-6, 101e-6])  # type: ignore[union-attr]
    behind = [task for task in graph.tasks if isinstance(task, Computation) and at in task.after]
    assert [task.duration_s for task in behind] == pytest.approx([50e-6, 50e-6])
    assert sent(graph) == {("h0", "h1"): 1000.0, ("h1", "h0"): 1000.0}


@pytest.mark.parametrize(
    ("kind", "expected"),
    [
        (CollectiveType.ALL_REDUCE, {(0, 1): 1200, (1, 2): 1200, (2, 3): 1200, (3, 0): 1200}),
        (CollectiveType.REDUCE_SCATTER, {(0, 1): 600, (1, 2): 600, (2, 3): 600, (3, 0): 600}),
        # Each rank gives 800 bytes, and gets those of the three others.
        (CollectiveType.ALL_GATHER, {(0, 1): 2400, (1, 2): 2400, (2, 3): 2400, (3, 0): 2400}),
        (CollectiveType.ALL_TO_ALL, {(a, b): 200 for a in range(4) for b in range(4) if a != b}),
        (CollectiveType.BROADCAST, {(2, 3): 800, (3, 0): 800, (0, 1): 800}),
        (CollectiveType.REDUCE, {(3, 2): 800, (0, 3): 800, (1, 0): 800}),
        (CollectiveType.GATHER, {(0, 2): 800, (1, 2): 800, (3, 2): 800}),
        (CollectiveType.SCATTER, {(2, 0): 200, (2, 1): 200, (2, 3): 200}),
        (CollectiveType.BARRIER, {}),
    ],
)
def test_what_collectives_send(tmp_path: Path, kind: CollectiveType, expected: dict[tuple[int, int], float]) -> None:
    graph = graph_of(write(tmp_path, *[[collective(1, kind, 800, root=2)] for _ in range(4)]), 4)
    assert sent(graph) == {(f"h{a}", f"h{b}"): size for (a, b), size in expected.items()}


def test_ranks_of_a_host_communicate_without_flows_and_share_its_time(tmp_path: Path) -> None:
    ranks = [[compute(1, 1000), collective(2, REDUCE, 8_000_000, 1)] for _ in range(4)]
    graph = graph_of(write(tmp_path, *ranks), 1, 4, nvlink_gbps=800.0)
    assert not graph.flow_groups
    assert graph.computing_host_seconds == pytest.approx(1000e-6)
    (inside,) = (task for task in graph.tasks if isinstance(task, Computation) and "inside" in task.name)
    assert inside.duration_s == pytest.approx(2 * 3 / 4 * 8e6 / 1e11, rel=0.5)


def test_a_send_is_one_with_its_receive(tmp_path: Path) -> None:
    write(tmp_path, [compute(1, 10), send(2, 1, 500, 1)], [compute(7, 30), receive(8, 0, 500, 7), compute(9, 20, 8)])
    trace = read_trace(tmp_path)
    (transfer,) = (task for task in trace.tasks if isinstance(task, TraceCollective))
    assert (transfer.type, transfer.ranks, transfer.size_bytes) == (None, (0, 1), 500)
    last = trace.tasks[-1]
    assert isinstance(last, TraceComputation)
    waits = [trace.tasks[number] for number in last.after]
    assert transfer in waits
    assert len(waits) == 2  # also for what the receiver did before


def test_communicators_come_from_metadata_or_a_file(tmp_path: Path) -> None:
    pairs = [(0, 1), (0, 1), (2, 3), (2, 3)]
    texts = [json.dumps([{"pg_name": "7", "ranks": pair}]) for pair in pairs]
    described = [[described_groups(1, f"['{text}']"), collective(2, REDUCE, 8, 1, group="7")] for text in texts]
    trace = read_trace(write(tmp_path / "a", *described))
    assert [task.ranks for task in trace.tasks if isinstance(task, TraceCollective)] == [(0, 1), (2, 3)]
    write(tmp_path / "b", *[[collective(2, REDUCE, 8, group=str(rank // 2 + 1))] for rank in range(4)])
    with pytest.raises(ChakraError, match=r"trace.0.et: rank 0, node 2: its communicator '1' is not described"):
        read_trace(tmp_path / "b")
    (tmp_path / "groups.json").write_text('{"1": [0, 1], "2": [2, 3]}', encoding="utf-8")
    assert read_trace(tmp_path / "b", groups=tmp_path / "groups.json").tasks == trace.tasks


def test_computations_that_nobody_waits_for_are_merged_without_loss(tmp_path: Path) -> None:
    nodes = [compute(1, 5), compute(2, 7, 1), compute(3, 0, 2), collective(4, REDUCE, 8, 2), compute(5, 9, 3)]
    trace = read_trace(write(tmp_path, nodes, nodes))
    durations = [task.duration_s for task in trace.tasks if isinstance(task, TraceComputation) and task.rank == 0]
    assert durations == pytest.approx([12e-6, 9e-6])
    assert (trace.num_nodes, trace.delayed_s) == (10, 0.0)
    merged = read_trace(tmp_path, Reading(merge_s=9.5e-6))
    assert len(merged.tasks) == 3
    assert merged.delayed_s == pytest.approx(9e-6)


def test_a_gpu_computes_in_order_beside_its_cpu(tmp_path: Path) -> None:
    write(tmp_path, [compute(1, 5, is_cpu=True), compute(2, 7, 1), compute(3, 5, 1, is_cpu=True), compute(4, 7, 3)])
    tasks = read_trace(tmp_path).tasks
    assert [(task.unit, task.after) for task in tasks if isinstance(task, TraceComputation)] == [
        (Unit.CPU, ()),
        (Unit.GPU, (0,)),
        (Unit.CPU, (0,)),
        (Unit.GPU, (2, 1)),
    ]
    write(tmp_path, [compute(1, 5), compute(2, 7)])
    assert [task.after for task in read_trace(tmp_path, Reading(in_order=False)).tasks] == [(), ()]


def test_operations_without_a_duration_need_a_device(tmp_path: Path) -> None:
    write(tmp_path, [compute(1, 0, num_ops=3_000_000)])
    with pytest.raises(ChakraError, match="rank 0, node 1: has 3000000 operations and no duration; a device is needed"):
        read_trace(tmp_path)
    (task,) = read_trace(tmp_path, Reading(flops_per_s=1e12)).tasks
    assert isinstance(task, TraceComputation)
    assert task.duration_s == pytest.approx(3e-6)


def test_nodes_may_come_before_what_they_wait_for(tmp_path: Path) -> None:
    trace = read_trace(
        write(tmp_path, [compute(2, 7, 1), collective(3, REDUCE, 8, 2), compute(1, 5)], [collective(3, REDUCE, 8)])
    )
    assert [task.duration_s for task in trace.tasks if isinstance(task, TraceComputation)] == pytest.approx([12e-6])


REDUCED = collective(1, REDUCE, 8)


@pytest.mark.parametrize(
    ("ranks", "problem"),
    [
        ([[compute(1, 5, 2), compute(2, 5, 1)]], "rank 0, node 2: waits for node 1, which waits for it"),
        ([[compute(1, 5, 9)]], "rank 0, node 1: waits for node 9, which is not there"),
        ([[compute(1, 5), compute(1, 6)]], "rank 0, node 1: its number is there twice"),
        ([[compute(1, -5)]], "rank 0, node 1: its duration is -5 µs"),
        ([[REDUCED], [collective(4, REDUCE, 9)]], "rank 1, node 4: its size is 9, but 8 on rank 0, node 1"),
        (
            [[REDUCED], [collective(4, CollectiveType.ALL_GATHER, 8)]],
            "rank 1, node 4: its type is ALL_GATHER, but ALL_REDUCE on rank 0, node 1",
        ),
        ([[REDUCED], []], "rank 0, node 1: this is collective number 1, and rank 1 has only 0 of them"),
        ([[send(1, 1, 8)], []], "rank 0, node 1: rank 1 has no receive for it"),
        ([[], [receive(3, 0, 8)]], "rank 1, node 3: rank 0 has no send for it"),
        ([[send(1, 1, 8)], [receive(3, 0, 9)]], "rank 1, node 3: its size is 9, but 8 on rank 0, node 1"),
        ([[send(1, 5, 8)]], "rank 0, node 1: names rank 5; there are 1 ranks"),
        (
            [
                [receive(1, 1, 8), send(2, 1, 8, 1)],
                [receive(3, 0, 8), send(4, 0, 8, 3)],
            ],
            "they wait for each other in a circle",
        ),
        (
            [
                [collective(1, REDUCE, 8, group="a"), collective(2, REDUCE, 8, 1, group="b")],
                [collective(2, REDUCE, 8, group="b"), collective(1, REDUCE, 8, 2, group="a")],
            ],
            "trace.1.et: rank 1, node 1; ",
        ),
    ],
)
def test_problems_are_named_by_file_rank_and_node(tmp_path: Path, ranks: list[list[Any]], problem: str) -> None:
    groups = tmp_path / "groups.json"
    groups.write_text('{"a": [0, 1], "b": [0, 1]}', encoding="utf-8")
    if problem.endswith("µs"):
        content = framed(Metadata()) + _message(b"\x08\x01\x18\x04\x38\xfb" + b"\xff" * 8 + b"\x01")
        (tmp_path / "trace.0.et").write_bytes(content)
    else:
        write(tmp_path, *ranks)
    with pytest.raises(ChakraError, match=re.escape(problem)) as raised:
        read_trace(tmp_path, groups=groups)
    assert re.search(r"trace\.\d\.et: rank \d, node \d", str(raised.value))


def _message(content: bytes) -> bytes:
    return bytes((len(content),)) + content


@pytest.mark.parametrize("kept", [1, 5, 20])
def test_a_truncated_file_is_named(tmp_path: Path, kept: int) -> None:
    write(tmp_path, [compute(1, 5), collective(2, REDUCE, 8, 1)])
    path = tmp_path / "trace.0.et"
    path.write_bytes(path.read_bytes()[:-kept])
    with pytest.raises(ChakraError, match=r"trace.0.et: message 2 is truncated"):
        read_trace(tmp_path)


def test_missing_ranks_and_second_traces_are_named(tmp_path: Path) -> None:
    write(tmp_path, [compute(1, 5)], [compute(1, 5)], [compute(1, 5)])
    (tmp_path / "trace.1.et").unlink()
    with pytest.raises(ChakraError, match=r"has 2 traces, but none of rank 1"):
        read_trace(tmp_path)
    (tmp_path / "other.1.et").write_bytes(b"")
    with pytest.raises(ChakraError, match=r"expected one trace; 'trace.0.et' is of a second one"):
        read_trace(tmp_path)
