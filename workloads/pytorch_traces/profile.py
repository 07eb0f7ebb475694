"""Profiles of PyTorch (Kineto): the events of one rank, checked, and the job that it belongs to."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from topologies.files import shown_path
from topologies.printable import quoted
from workloads.chakra.wire import ChakraError

OPTIMIZER_STEP = "Optimizer.step"
"""What the name of an optimizer's step begins with."""
_LATEST_MICROS = 1e18
_LONGEST_MICROS = 1e12
_KINDS = {
    **dict.fromkeys(("kernel", "gpu_memcpy", "gpu_memset"), "gpu"),
    **dict.fromkeys(("cuda_runtime", "cuda_driver", "hip_runtime", "privateuse1_runtime"), "runtime"),
    **dict.fromkeys(("cpu_op", "user_annotation"), "cpu"),
}
"""By category of events."""


@dataclass(frozen=True, slots=True)
class Event:
    """Something that took time; ``number`` is its place in ``traceEvents``. Times are in microseconds."""

    number: int
    category: str
    name: str
    thread: tuple[str, str]
    begin: float
    duration: float
    arguments: Mapping[str, Any]

    @property
    def end(self) -> float:
        """When it ended."""
        return self.begin + self.duration

    @property
    def stream(self) -> tuple[str, str]:
        """The GPU and its stream."""
        return str(self.arguments.get("device")), str(self.arguments.get("stream"))

    @property
    def correlation(self) -> int | None:
        """What an operation of a GPU has in common with the call that launched it."""
        found = self.arguments.get("correlation")
        return found if isinstance(found, int) else None


@dataclass(frozen=True, slots=True)
class Profile:
    """The events of a rank by what they are, each list in the order of their begins.

    ``groups`` has the ranks of process groups by name, of those whose ranks are recorded; ``num_events`` counts all.
    """

    path: Path
    rank: int
    gpu: tuple[Event, ...]
    runtime: tuple[Event, ...]
    cpu: tuple[Event, ...]
    groups: Mapping[str, tuple[int, ...]]
    world_size: int | None
    num_events: int

    def where(self, number: int) -> str:
        """Return the place of an event for a message."""
        return f"{shown_path(self.path)}: rank {self.rank}, node {number}"


def read_profile(
    document: Mapping[str, Any], path: Path, rank: int, more: Mapping[int, Mapping[str, Any]] | None = None
) -> Profile:
    """Return the profile in a document. ``more`` has arguments by ``Record function id``, for events that lack them.

    Raises ChakraError, which names file, rank and event.
    """
    where = f"{shown_path(path)}: rank {rank}"
    listed = document.get("traceEvents")
    if not isinstance(listed, list):
        raise ChakraError(f"{where}: traceEvents is no list")
    found: dict[str, list[Event]] = {"gpu": [], "runtime": [], "cpu": []}
    for number, event in enumerate(listed):
        if not isinstance(event, dict) or event.get("ph") != "X":
            continue
        kind = _KINDS.get(str(event.get("cat")))
        if kind is not None:
            found[kind].append(_event(event, number, f"{where}, node {number}", more or {}))
    for events in found.values():
        events.sort(key=lambda event: (event.begin, -event.duration))
    if not found["cpu"] and not found["gpu"]:
        raise ChakraError(f"{where}: has no operations of CPUs or GPUs")
    job = document.get("distributedInfo")
    job = job if isinstance(job, dict) else {}
    world_size = job.get("world_size")
    return Profile(
        path,
        rank,
        tuple(found["gpu"]),
        tuple(found["runtime"]),
        tuple(found["cpu"]),
        _groups(job.get("pg_config")),
        world_size if type(world_size) is int else None,
        len(listed),
    )


def _event(event: Mapping[str, Any], number: int, where: str, more: Mapping[int, Mapping[str, Any]]) -> Event:
    begin, duration = _micros(event.get("ts"), "ts", where), _micros(event.get("dur", 0), "dur", where)
    if not 0 <= duration <= _LONGEST_MICROS:
        raise ChakraError(f"{where}: its duration is {duration:g} µs")
    arguments = event.get("args")
    arguments = arguments if isinstance(arguments, dict) else {}
    identity = arguments.get("Record function id")
    if isinstance(identity, int) and identity in more:
        arguments = {**more[identity], **arguments}
    return Event(
        number,
        str(event.get("cat")),
        str(event.get("name")),
        (str(event.get("pid")), str(event.get("tid"))),
        begin,
        duration,
        arguments,
    )


def _micros(value: Any, key: str, where: str) -> float:
    if not isinstance(value, int | float) or isinstance(value, bool) or not abs(value) <= _LATEST_MICROS:
        raise ChakraError(f"{where}: {key} is " + ("missing" if value is None else quoted(str(value))))
    return float(value)


def _groups(described: Any) -> dict[str, tuple[int, ...]]:
    groups = {}
    for group in described if isinstance(described, list) else ():
        ranks = listed_ranks(group.get("ranks")) if isinstance(group, dict) else None
        if ranks:
            groups[str(group.get("pg_name"))] = ranks
    return groups


def listed_ranks(value: Any) -> tuple[int, ...] | None:
    """Return ranks that are a list, or written as one; None: they are not there, or not all of them."""
    if isinstance(value, str):
        try:
            value = json.loads(value)
        except ValueError:
            return None
    if not isinstance(value, list) or not all(type(rank) is int and rank >= 0 for rank in value):
        return None
    return tuple(value)
