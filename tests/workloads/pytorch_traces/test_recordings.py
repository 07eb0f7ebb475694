"""Recordings of the host library are played as they were recorded, and what is wrong in them is named."""

import json
from pathlib import Path
from typing import Any

import pytest

from workloads.chakra.folders import read_trace
from workloads.chakra.joining import Trace, TraceCollective, TraceComputation
from workloads.chakra.wire import ChakraError, CollectiveType

HEADER = {
    "trainyard_recording": 1,
    "iteration": 3,
    "duration_s": 0.01,
    "groups": {name: {"ranks": [0, 1], "backend": "gloo"} for name in ("all", "same")},
}


def issue(number: int, at_s: float, operation: str, size_bytes: int, **more: Any) -> dict[str, Any]:
    return {
        "collective": number,
        "at_s": at_s,
        "operation": operation,
        "group": "all",
        "size_bytes": size_bytes,
        **more,
    }


def wait(begin_s: float, end_s: float, *numbers: int) -> dict[str, Any]:
    return {"waits_for": list(numbers), "begin_s": begin_s, "end_s": end_s}


def written(folder: Path, *ranks: list[dict[str, Any]]) -> Path:
    for rank, lines in enumerate(ranks):
        text = "".join(json.dumps(line) + "\n" for line in [HEADER | {"rank": rank}, *lines])
        (folder / f"trace.{rank}.jsonl").write_text(text)
    return folder


def collectives(trace: Trace) -> list[TraceCollective]:
    return [task for task in trace.tasks if isinstance(task, TraceCollective)]


def test_sizes_are_what_each_rank_gives(tmp_path: Path) -> None:
    lines = [
        issue(11, 0.001, "_allgather_base_", 4000),
        issue(12, 0.002, "_reduce_scatter_base_", 6000),
        issue(13, 0.003, "broadcast_", 500, peer=1),
        issue(14, 0.004, "barrier", 0),
    ]
    found = [
        (task.type, task.size_bytes, task.root) for task in collectives(read_trace(written(tmp_path, lines, lines)))
    ]
    assert found == [
        (CollectiveType.ALL_GATHER, 2000, 0),
        (CollectiveType.ALL_REDUCE, 6000, 0),  # that is how gloo scatters
        (CollectiveType.BROADCAST, 500, 1),
    ]


def test_stalls_are_no_computing(tmp_path: Path) -> None:
    lines = [issue(7, 0.002, "allreduce_", 1000), wait(0.005, 0.009, 7)]
    trace = read_trace(written(tmp_path, lines, lines))
    durations = [task.duration_s for task in trace.tasks if isinstance(task, TraceComputation) and task.rank == 0]
    assert durations == pytest.approx([0.002, 0.003, 0.001])


def test_a_transfer_is_between_ranks_of_the_job(tmp_path: Path) -> None:
    sends, receives = [issue(1, 0.001, "send", 800, peer=1)], [issue(1, 0.001, "recv_", 800, peer=0)]
    (found,) = collectives(read_trace(written(tmp_path, sends, receives)))
    assert (found.type, found.ranks, found.size_bytes) == (None, (0, 1), 800)


@pytest.mark.parametrize(
    ("lines", "problem"),
    [
        ([issue(1, -0.1, "allreduce_", 8)], "rank 1, node 2: at_s: input should be greater than or equal to 0"),
        ([issue(1, 0.1, "gossip", 8)], "rank 1, node 2: its operation is 'gossip', which cannot be played"),
        ([issue(1, 0.1, "broadcast_", 8, peer=2)], "rank 1, node 2: its peer is 2, in a group of 2"),
        ([issue(1, 0.1, "allreduce_", 2**70)], "rank 1, node 2: cannot be played: 'Value out of range"),
        ([issue(1, 0.1, "barrier", 0)] * 2, "rank 1: a collective is there twice"),
        ([wait(0.1, 0.2, 5)], "rank 1: at 0.1 s it waits for collective 5, which is not there"),
        ([issue(1, 0.1, "allreduce_", 8)], "rank 0 has only 0 of them"),
        ([{"waits_for": 3}], "rank 1, node 2: waits_for: input should be a valid list"),
    ],
)
def test_what_is_wrong_is_named(tmp_path: Path, lines: list[dict[str, Any]], problem: str) -> None:
    with pytest.raises(ChakraError) as raised:
        read_trace(written(tmp_path, [], lines))
    assert problem in str(raised.value)
    assert "trace.1.jsonl" in str(raised.value)


def test_ranks_that_wait_for_each_other_in_a_circle(tmp_path: Path) -> None:
    def lines(first: str, second: str) -> list[dict[str, Any]]:
        return [
            issue(1, 0.001, "allreduce_", 8) | {"group": first},
            wait(0.002, 0.003, 1),
            issue(2, 0.004, "allreduce_", 8) | {"group": second},
        ]

    with pytest.raises(ChakraError, match=r"trace\.0\.jsonl: rank 0, node \d.* in a circle"):
        read_trace(written(tmp_path, lines("all", "same"), lines("same", "all")))


def test_a_file_that_is_truncated(tmp_path: Path) -> None:
    path = written(tmp_path, [issue(1, 0.1, "allreduce_", 8)]) / "trace.0.jsonl"
    path.write_text(path.read_text()[:-9])
    with pytest.raises(ChakraError, match=r"trace\.0\.jsonl: rank 0, node 2: is truncated, or no JSON"):
        read_trace(tmp_path)
