"""Recordings of ``hostlib.torch``: one iteration of a rank, as lines of JSON, as Chakra nodes.

The host library is a distribution of its own, so both sides state the format: ``hostlib/torch/recording.py``.
"""

import json
from collections.abc import Mapping
from pathlib import Path

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from topologies.files import FileError, read_text, shown_path
from workloads.chakra.wire import ChakraError, CollectiveType
from workloads.pytorch_traces.collectives import SIDES, collective_type, plain_name
from workloads.pytorch_traces.nodes import Collective
from workloads.pytorch_traces.timeline import Issued, Stall, timeline_trace

SUFFIX = ".jsonl"
MOST_BYTES = 256 << 20
_FORMAT = 1
_MICROS = 1e6
_ROOTED = (CollectiveType.BROADCAST, CollectiveType.REDUCE, CollectiveType.GATHER, CollectiveType.SCATTER)


class _Line(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)


class _Group(_Line):
    ranks: list[int] = Field(min_length=1)
    backend: str


class _Header(_Line):
    trainyard_recording: int
    rank: int
    iteration: int
    duration_s: float = Field(ge=0, le=1e6)
    groups: dict[str, _Group]


class _Issue(_Line):
    collective: int = Field(ge=0)
    at_s: float = Field(ge=0, le=1e6)
    operation: str
    group: str
    size_bytes: int = Field(ge=0)
    peer: int | None = None


class _Wait(_Line):
    waits_for: list[int]
    begin_s: float = Field(ge=0, le=1e6)
    end_s: float = Field(ge=0, le=1e6)


def recorded_trace(path: Path, rank: int) -> bytes:
    """Return the trace of a rank as Chakra has it. A node's number is that of its line.

    Raises ChakraError, which names the file, the rank and the node.
    """
    where = f"{shown_path(path)}: rank {rank}"
    try:
        lines = read_text(path, MOST_BYTES).splitlines()
    except FileError as error:
        raise ChakraError(str(error)) from error

    def place(number: int) -> str:
        return f"{where}, node {number}"

    parsed = [_parsed(line, place(number)) for number, line in enumerate(lines, start=1)]
    header = parsed[0] if parsed else None
    if not isinstance(header, _Header):
        raise ChakraError(f"{where}: is no recording: its first line does not describe one")
    if header.trainyard_recording != _FORMAT or header.rank != rank:
        raise ChakraError(f"{where}: is of format {header.trainyard_recording} and rank {header.rank}")
    issues = {number: line for number, line in enumerate(parsed, start=1) if isinstance(line, _Issue)}
    number_of = {issue.collective: number for number, issue in issues.items()}
    if len(number_of) < len(issues):
        raise ChakraError(f"{where}: a collective is there twice")
    issued = [
        Issued(issue.at_s * _MICROS, number, _collective(issue, header.groups, place(number)))
        for number, issue in issues.items()
    ]
    stalls = []
    for wait in (line for line in parsed if isinstance(line, _Wait)):
        unknown = [each for each in wait.waits_for if each not in number_of]
        if unknown or wait.end_s < wait.begin_s:
            problem = f"for collective {unknown[0]}, which is not there" if unknown else "and ends before it begins"
            raise ChakraError(f"{where}: at {wait.begin_s} s it waits {problem}")
        numbers = tuple(number_of[each] for each in wait.waits_for)
        stalls.append(Stall(wait.begin_s * _MICROS, wait.end_s * _MICROS, numbers))
    groups = {name: tuple(group.ranks) for name, group in header.groups.items()}
    return timeline_trace(0.0, header.duration_s * _MICROS, issued, stalls, groups, len(lines) + 1, place)


def _parsed(line: str, where: str) -> _Header | _Issue | _Wait:
    try:
        document = json.loads(line)
    except (ValueError, RecursionError) as error:
        raise ChakraError(f"{where}: is truncated, or no JSON") from error
    if not isinstance(document, dict):
        raise ChakraError(f"{where}: is no object of JSON")
    kind = _Header if "trainyard_recording" in document else _Issue if "collective" in document else _Wait
    try:
        return kind.model_validate(document)
    except ValidationError as error:
        first = error.errors()[0]
        key = ".".join(map(str, first["loc"]))
        raise ChakraError(f"{where}: {key}: {first['msg'].lower()}") from error


def _collective(issue: _Issue, groups: Mapping[str, _Group], place: str) -> Collective:
    """Return what a rank gives, of the sizes that ``hostlib.torch.algorithms.Collective`` has."""
    name, group = plain_name(issue.operation), groups.get(issue.group)
    if group is None:
        raise ChakraError(f"{place}: its process group {issue.group[:60]!r} is not described")
    if issue.peer is not None and not 0 <= issue.peer < len(group.ranks):
        raise ChakraError(f"{place}: its peer is {issue.peer}, in a group of {len(group.ranks)}")
    peer = None if issue.peer is None else group.ranks[issue.peer]
    if name in SIDES and peer is not None:
        return Collective(SIDES[name], issue.size_bytes, issue.group, peer=peer)
    kind = collective_type(name)
    if kind is None:
        raise ChakraError(f"{place}: its operation is {issue.operation[:60]!r}, which cannot be played")
    if kind is CollectiveType.BARRIER:
        return Collective(kind, 0, issue.group)
    return Collective(_sent_as(kind, group), _given(kind, issue, group), issue.group, peer if kind in _ROOTED else None)


def _given(kind: CollectiveType, issue: _Issue, group: _Group) -> int:
    if kind is CollectiveType.ALL_GATHER:
        return issue.size_bytes // len(group.ranks)
    return issue.size_bytes * (len(group.ranks) if kind is CollectiveType.SCATTER else 1)


def _sent_as(kind: CollectiveType, group: _Group) -> CollectiveType:
    """Gloo reduces all of the input for every reduce-scatter."""
    is_reduced_whole = kind is CollectiveType.REDUCE_SCATTER and group.backend == "gloo"
    return CollectiveType.ALL_REDUCE if is_reduced_whole else kind
