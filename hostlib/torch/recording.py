"""Recordings: what one iteration of one rank did, as a file of lines of JSON that can be played again.

The first line describes the rank, its iteration and its process groups. Each further line is a collective that began,
or a stall: a time in which the rank waited for collectives. Between them it computed. Times are in seconds after the
iteration's begin.
"""

import json
import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from hostlib.torch.iterations import Iteration
from hostlib.torch.measurement import stall_for_futures, waits_by_collective
from hostlib.torch.process_groups import Group

FORMAT = 1


def write_recording(folder: Path, rank: int, number: int, iteration: Iteration, groups: Mapping[str, Group]) -> None:
    """Write the file of a rank, ``trace.RANK.jsonl``, as a whole or not at all; the folder is made.

    Args:
        folder: Where to.
        rank: The rank.
        number: The iteration's number, which is the same on all ranks.
        iteration: What was recorded, with waits.
        groups: Process groups by name.

    Raises:
        OSError: It cannot be written.
    """
    folder.mkdir(parents=True, exist_ok=True)
    text = "".join(json.dumps(line) + "\n" for line in _lines(rank, number, iteration, groups))
    unfinished = folder / f".trace.{rank}.jsonl.{os.getpid()}"
    unfinished.write_text(text, encoding="utf-8")
    unfinished.replace(folder / f"trace.{rank}.jsonl")


def _lines(rank: int, number: int, iteration: Iteration, groups: Mapping[str, Group]) -> Iterator[dict[str, Any]]:
    def seconds(time_ns: float) -> float:
        return max(0.0, round((time_ns - iteration.begin_ns) / 1e9, 9))

    issues = {issue.number: issue for issue in iteration.issues}
    named = {issue.group for issue in issues.values()}
    yield {
        "trainyard_recording": FORMAT,
        "rank": rank,
        "iteration": number,
        "duration_s": seconds(iteration.end_ns),
        "groups": {
            name: {"ranks": list(group.ranks), "backend": group.backend}
            for name, group in groups.items()
            if name in named
        },
    }
    for issue in issues.values():
        line: dict[str, Any] = {
            "collective": issue.number,
            "at_s": seconds(issue.time_ns),
            "operation": issue.operation,
            "group": issue.group,
            "size_bytes": issue.size_bytes,
        }
        yield line if issue.peer is None else {**line, "peer": issue.peer}
    waits = waits_by_collective(iteration)
    for awaited, wait in waits.items():
        yield {"waits_for": [awaited], "begin_s": seconds(wait.begin_ns), "end_s": seconds(wait.end_ns)}
    stall = stall_for_futures(iteration, issues, waits)
    if stall is not None:
        silent = [each for each in issues if each not in waits]
        yield {"waits_for": silent, "begin_s": seconds(stall[0]), "end_s": seconds(stall[1])}
