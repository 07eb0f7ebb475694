"""Profiles of PyTorch for tests, written event by event; times are in microseconds."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

Event = dict[str, Any]


def event(category: str, name: str, begin: float, duration: float, tid: int | str = 1, **arguments: Any) -> Event:
    return {
        "ph": "X",
        "cat": category,
        "name": name,
        "pid": 1,
        "tid": tid,
        "ts": begin,
        "dur": duration,
        "args": arguments,
    }


def kernel(
    correlation: int,
    launch: float,
    begin: float,
    duration: float,
    stream: int = 7,
    name: str = "gemm",
    **arguments: Any,
) -> list[Event]:
    """A kernel behind the call that launches it, which takes 5 µs."""
    return [
        event("cuda_runtime", "cudaLaunchKernel", launch, 5, correlation=correlation),
        event("kernel", name, begin, duration, stream, correlation=correlation, stream=stream, device=0, **arguments),
    ]


def all_reduce(
    correlation: int, launch: float, begin: float, duration: float, elements: int, **other: Any
) -> list[Event]:
    described = {
        "Collective name": "allreduce",
        "dtype": "Float",
        "In msg nelems": elements,
        "Out msg nelems": elements,
        "Group size": 2,
        "Process Group Name": "0",
        "Process Group Ranks": "[0, 1]",
    }
    return kernel(
        correlation, launch, begin, duration, 20, "ncclDevKernel_AllReduce_Sum_f32_RING_LL", **described | other
    )


def write(folder: Path, *ranks: Sequence[Event], world_size: int | None = None) -> Path:
    folder.mkdir(exist_ok=True)
    for rank, events in enumerate(ranks):
        job = {"backend": "nccl", "rank": rank, "world_size": world_size or len(ranks)}
        document = {"schemaVersion": 1, "distributedInfo": job, "traceEvents": events}
        (folder / f"host_{7 + rank}.pt.trace.json").write_text(json.dumps(document), encoding="utf-8")
    return folder
