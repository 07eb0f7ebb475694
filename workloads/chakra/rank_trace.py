"""The trace of one rank: its nodes are read, checked, and made as few tasks as do the same.

Nodes without a duration pass on what they wait for. With ``in_order`` each rank computes one node at a time on its GPU
and one on its CPU, in the order of the file; then consecutive computations are one task, unless somebody waits for the
first of them. With ``merge_s`` whoever waits for it may wait that much longer.
"""

import json
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path
from typing import Any

from google.protobuf.message import DecodeError

from topologies.files import shown_path
from topologies.printable import quoted
from workloads.chakra.wire import (
    ChakraError,
    CollectiveType,
    LeanNode,
    Metadata,
    NodeType,
    attributes,
    full_node,
    messages,
)

_IS_CPU, _IS_NO_CPU = b"\n\tis_cpu_op\xd8\x01\x01", b"\n\tis_cpu_op\xd8\x01\x00"
"""The attribute as it is usually encoded; any other encoding is read in full."""
_LONGEST_MICROS = 10**12


class Unit(StrEnum):
    """What a computation occupies."""

    GPU = "gpu"
    CPU = "cpu"


@dataclass(frozen=True, slots=True)
class Reading:
    """How traces are read.

    ``flops_per_s`` is the speed for nodes with operations and no duration; ``memory_bytes_per_s`` that of the memory
    that they read and write, without which it takes no time.
    """

    in_order: bool = True
    merge_s: float = 0.0
    flops_per_s: float | None = None
    memory_bytes_per_s: float | None = None


@dataclass(slots=True)
class Work:
    """A task of a rank: a computation; it waits for the rank's tasks numbered ``after``."""

    node: int
    unit: Unit
    duration_s: float
    after: tuple[int, ...]
    exposed_s: float = field(default=-1.0)


@dataclass(frozen=True, slots=True)
class Communication:
    """A task of a rank: its part in a collective, or one side of a transfer between two ranks.

    ``ranks`` are those of the collective (empty: all), or sender and receiver.
    """

    node: int
    type: NodeType
    collective: CollectiveType | None
    communicator: str
    ranks: tuple[int, ...]
    tag: int
    size_bytes: int
    root: int | None
    after: tuple[int, ...]


RankTask = Work | Communication


@dataclass(frozen=True, slots=True)
class RankTrace:
    """The tasks of one rank, each behind those that it waits for; ``num_nodes`` of the file became these."""

    path: Path
    rank: int
    tasks: tuple[RankTask, ...]
    num_nodes: int
    delayed_s: float

    def where(self, node: int) -> str:
        """Return the place of a node for a message."""
        return _where(self.path, self.rank, node)


Communicators = Mapping[str, tuple[int, ...]]


def _where(path: Path, rank: int, node: int) -> str:
    return f"{shown_path(path)}: rank {rank}, node {node}"


_NO_UNIT = 2
_UNITS = tuple(Unit)
"""Units by number; nodes that occupy none have the number _NO_UNIT."""
_COMMUNICATES = frozenset(map(int, (NodeType.SEND, NodeType.RECEIVE, NodeType.COLLECTIVE)))

_Parsed = tuple[int, int, float, list[int], int, bytes]
"""Number, type, microseconds, what it waits for, the unit that it occupies, and its bytes where still needed."""


def read_rank(content: bytes, path: Path, rank: int, reading: Reading, groups: Communicators) -> RankTrace:
    """Read the trace of a rank. Raises ChakraError, which names the file, the rank and the node."""
    nodes = list(_parsed(content, path, rank, reading))
    try:
        return _Reduction(path, rank, reading, groups).of(nodes)
    except KeyError:
        # A node waits for one that comes later, or that is not there.
        return _Reduction(path, rank, reading, groups).of(_sorted(nodes, path, rank))


def _parsed(content: bytes, path: Path, rank: int, reading: Reading) -> Iterator[_Parsed]:
    stream = messages(content, path)
    first = next(stream, None)
    if first is None:
        raise ChakraError(f"{shown_path(path)}: is empty")
    # One message for all nodes, and slices of its lists: both save most of the time.
    node = LeanNode()
    parse = node.ParseFromString
    computation, metadata, last = int(NodeType.COMPUTATION), int(NodeType.METADATA), int(max(NodeType))
    number = 0
    try:
        Metadata.FromString(first)
        for raw in stream:
            number += 1
            parse(raw)
            kind, micros, node_id = node.type, node.duration_micros, node.id
            if not 0 <= micros <= _LONGEST_MICROS:
                raise ChakraError(f"{_where(path, rank, node_id)}: its duration is {micros} µs")
            is_cpu = not raw.endswith(_IS_NO_CPU) and (raw.endswith(_IS_CPU) or _is_cpu(raw, path, rank, node_id))
            after = node.ctrl_deps[:] + node.data_deps[:]
            if kind == computation:
                if not micros and b"num_ops" in raw:
                    micros = _computed_micros(raw, _where(path, rank, node_id), reading)
                yield node_id, kind, micros, after, (is_cpu if micros else _NO_UNIT), b""
            elif kind in _COMMUNICATES and not is_cpu:
                yield node_id, kind, micros, after, _NO_UNIT, raw
            elif 0 <= kind <= last:
                # What loads, stores and launches occupies the CPU.
                yield node_id, kind, micros, after, (1 if micros else _NO_UNIT), raw if kind == metadata else b""
            else:
                raise ChakraError(f"{_where(path, rank, node_id)}: its type is {kind}, which is unknown")
    except DecodeError as error:
        problem = f"message {number} is damaged, or this is no Chakra trace"
        raise ChakraError(f"{shown_path(path)}: {problem}") from error


def _is_cpu(raw: bytes, path: Path, rank: int, node_id: int) -> bool:
    if _IS_CPU in raw:
        return True
    if _IS_NO_CPU in raw or b"is_cpu_op" not in raw:
        return False
    return bool(attributes(full_node(raw, _where(path, rank, node_id))).get("is_cpu_op"))


def _computed_micros(raw: bytes, where: str, reading: Reading) -> float:
    """Return what a node without a duration takes, by the roofline: its operations or its bytes, what takes longer."""
    values = attributes(full_node(raw, where))
    operations, size_bytes = (values.get(key, 0) for key in ("num_ops", "tensor_size"))
    for key, value in (("num_ops", operations), ("tensor_size", size_bytes)):
        if not isinstance(value, int | float) or not 0 <= value < float("inf"):
            raise ChakraError(f"{where}: {key} is {quoted(str(value))}")
    if operations and reading.flops_per_s is None:
        raise ChakraError(f"{where}: has {operations} operations and no duration; a device is needed")
    moved_s = size_bytes / reading.memory_bytes_per_s if reading.memory_bytes_per_s else 0.0
    computed_s: float = operations / (reading.flops_per_s or 1.0)
    return max(computed_s, moved_s) * 1e6


def _sorted(nodes: Sequence[_Parsed], path: Path, rank: int) -> list[_Parsed]:
    """Return nodes so that each is behind what it waits for, else in the order of the file.

    Raises ChakraError for a node that is not there, and for nodes that wait for each other.
    """
    place = {node[0]: position for position, node in enumerate(nodes)}
    for node in nodes:
        for dependence in node[3]:
            if dependence not in place:
                raise ChakraError(f"{_where(path, rank, node[0])}: waits for node {dependence}, which is not there")
    state = bytearray(len(nodes))
    order: list[_Parsed] = []
    for start in range(len(nodes)):
        stack = [start]
        while stack:
            position = stack[-1]
            if state[position] == 0:
                state[position] = 1
                for dependence in reversed(nodes[position][3]):
                    at = place[dependence]
                    if state[at] == 1:
                        raise ChakraError(
                            f"{_where(path, rank, nodes[position][0])}: waits for node {dependence}, which waits for it"
                        )
                    if state[at] == 0:
                        stack.append(at)
            else:
                stack.pop()
                if state[position] == 1:
                    state[position] = 2
                    order.append(nodes[position])
    return order


class _Reduction:
    """Makes tasks of nodes that are behind what they wait for."""

    def __init__(self, path: Path, rank: int, reading: Reading, groups: Communicators) -> None:
        self._path, self._rank, self._reading = path, rank, reading
        self._groups = dict(groups)
        self._tasks: list[RankTask] = []
        self._delayed_s = 0.0

    def of(self, nodes: Sequence[_Parsed]) -> RankTrace:
        """Return the trace of these nodes."""
        exposed = self._exposed(nodes)
        in_order = self._reading.in_order
        tasks, done = self._tasks, dict[int, tuple[int, ...]]()
        last: list[tuple[int, Work] | None] = [None, None]
        waited: tuple[set[int], set[int]] = (set(), set())
        for node_id, kind, micros, after, unit, raw in nodes:
            if len(after) == 1:
                waits = done[after[0]]
            else:
                waits = tuple(dict.fromkeys(task for dependence in after for task in done[dependence]))
            if unit == _NO_UNIT:
                if kind in _COMMUNICATES and raw:
                    done[node_id] = (len(tasks),)
                    tasks.append(self._communication(node_id, NodeType(kind), raw, waits))
                    continue
                if raw:
                    self._groups |= _described_groups(raw, _where(self._path, self._rank, node_id))
                done[node_id] = waits
                continue
            known, before = waited[unit], last[unit]
            duration_s = micros * 1e-6
            if before is not None:
                number, work = before
                if known.issuperset(waits) and (work.exposed_s < 0 or self._may_wait(work, duration_s)):
                    work.duration_s += duration_s
                    done[node_id] = (number,)
                    if node_id in exposed and work.exposed_s < 0:
                        work.exposed_s = work.duration_s
                    continue
                waits = (*[task for task in waits if task not in known], number)
            number = len(tasks)
            work = Work(node_id, _UNITS[unit], duration_s, waits)
            tasks.append(work)
            done[node_id] = (number,)
            if in_order:
                last[unit] = number, work
                known.update(waits)
                known.add(number)
                if node_id in exposed:
                    work.exposed_s = duration_s
        if len(done) < len(nodes):
            raise ChakraError(f"{_where(self._path, self._rank, _twice(nodes))}: its number is there twice")
        return RankTrace(self._path, self._rank, tuple(tasks), len(nodes), self._delayed_s)

    def _may_wait(self, work: Work, duration_s: float) -> bool:
        """Return whether those who wait for a part of a task may also wait for a computation that is added to it."""
        delay_s = work.duration_s + duration_s - work.exposed_s
        if delay_s > self._reading.merge_s:
            return False
        self._delayed_s = max(self._delayed_s, delay_s)
        return True

    def _exposed(self, nodes: Iterable[_Parsed]) -> set[int]:
        """Return the nodes that something else than a computation of the same unit waits for."""
        if not self._reading.in_order:
            return set()
        units: dict[int, int] = {}
        exposed: set[int] = set()
        for node in nodes:
            unit = units[node[0]] = node[4]
            for dependence in node[3]:
                if unit == _NO_UNIT or units[dependence] != unit:
                    exposed.add(dependence)
        return exposed

    def _communication(self, node_id: int, kind: NodeType, raw: bytes, after: tuple[int, ...]) -> Communication:
        where = _where(self._path, self._rank, node_id)
        values = attributes(full_node(raw, where))
        is_barrier = kind is NodeType.COLLECTIVE and values.get("comm_type") == CollectiveType.BARRIER
        size_bytes = _whole(values, "comm_size", where, 0 if is_barrier else None)
        tag = _whole(values, "comm_tag", where, 0)
        if kind is not NodeType.COLLECTIVE:
            key = "comm_dst" if kind is NodeType.SEND else "comm_src"
            other = _whole(values, key, where)
            pair = (self._rank, other) if kind is NodeType.SEND else (other, self._rank)
            if other == self._rank:
                raise ChakraError(f"{where}: {key} is the rank itself")
            return Communication(node_id, kind, None, "", pair, tag, size_bytes, None, after)
        number = _whole(values, "comm_type", where)
        if number not in set(CollectiveType):
            raise ChakraError(f"{where}: comm_type is {number}, which is unknown")
        communicator = str(values.get("pg_name", ""))
        ranks = self._groups.get(communicator, ())
        if not ranks and communicator not in ("", "0") and communicator not in self._groups:
            raise ChakraError(f"{where}: its communicator {quoted(communicator)} is not described; give groups")
        if len(set(ranks)) < len(ranks):
            raise ChakraError(f"{where}: its communicator {quoted(communicator)} has a rank twice")
        if ranks and self._rank not in ranks:
            raise ChakraError(f"{where}: the rank is not in its communicator {quoted(communicator)}")
        root = _whole(values, "root", where) if "root" in values else None
        if root is not None and ranks and root not in ranks:
            raise ChakraError(f"{where}: its root is rank {root}, which is not in its communicator")
        return Communication(node_id, kind, CollectiveType(number), communicator, ranks, tag, size_bytes, root, after)


def _twice(nodes: Sequence[_Parsed]) -> int:
    """Return the number that two nodes have."""
    return Counter(node[0] for node in nodes).most_common(1)[0][0]


def _whole(values: Mapping[str, Any], key: str, where: str, default: int | None = None) -> int:
    value = values.get(key, default)
    if not isinstance(value, int) or isinstance(value, bool) or not 0 <= value < 2**63:
        raise ChakraError(f"{where}: {key} is " + ("missing" if value is None else quoted(str(value))))
    return value


def _described_groups(raw: bytes, where: str) -> dict[str, tuple[int, ...]]:
    """Return the communicators that a node of metadata describes, as PyTorch's do, if it does."""
    text = full_node(raw, where).inputs.values
    start, end = text.find("["), text.rfind("]")
    while start >= 0 and text[start + 1 :].lstrip(" '\"").startswith("["):
        start, end = text.find("[", start + 1), text.rfind("]", 0, end)
    try:
        described = json.loads(text[start : end + 1])
        return {str(group["pg_name"]): tuple(map(int, group["ranks"])) for group in described}
    except (ValueError, TypeError, KeyError, RecursionError):
        return {}
