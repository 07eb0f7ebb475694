"""Chakra nodes of one rank, written one after the other."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from topologies.printable import quoted
from workloads.chakra.wire import ChakraError, CollectiveType, Node, NodeType, file_header, framed

Where = Callable[[int], str]
"""Returns the place of a node, by its number, for a message."""


@dataclass(frozen=True, slots=True)
class Collective:
    """A collective, or one side of a transfer (``send``, ``receive``) with the rank ``peer``.

    ``size_bytes`` is what each rank gives. ``group`` names the process group; "" is that of all ranks. ``root`` is the
    number of a rank in the job, and not in its group.
    """

    type: CollectiveType | NodeType
    size_bytes: int
    group: str = ""
    root: int | None = None
    peer: int = 0
    tag: int = 0


class NodeWriter:
    """Writes nodes. Durations are rounded to microseconds so that their sums stay right.

    It raises ChakraError for values that a trace cannot have.
    """

    def __init__(self, groups: Mapping[str, Iterable[int]], first_free: int, where: Where) -> None:
        """``groups`` has the ranks of process groups; nodes that are given no number get those from ``first_free``."""
        self._where = where
        self._next = first_free + 1
        self._parts = [file_header(first_free, groups)]
        self._rounded_up = {False: 0.0, True: 0.0}

    def content(self) -> bytes:
        """Return the trace."""
        return b"".join(self._parts)

    def compute(self, micros: float, after: Iterable[int], *, is_cpu: bool, number: int | None = None) -> int:
        """Write a computation; return its number."""
        owed = micros - self._rounded_up[is_cpu]
        whole = max(0, round(owed))
        self._rounded_up[is_cpu] = whole - owed
        return self._write(NodeType.COMPUTATION, after, {}, None, is_cpu, number, whole)

    def communicate(self, collective: Collective, after: Iterable[int], number: int) -> int:
        """Write a collective or a side of a transfer with a number; return that."""
        values: dict[str, int] = {"comm_size": collective.size_bytes}
        if isinstance(collective.type, NodeType):
            values |= {"comm_tag": collective.tag}
            values["comm_dst" if collective.type is NodeType.SEND else "comm_src"] = collective.peer
            return self._write(collective.type, after, values, None, False, number)
        values["comm_type"] = int(collective.type)
        if collective.root is not None:
            values["root"] = collective.root
        return self._write(NodeType.COLLECTIVE, after, values, collective.group or None, False, number)

    def _write(
        self,
        kind: NodeType,
        after: Iterable[int],
        values: Mapping[str, int],
        group: str | None,
        is_cpu: bool,
        number: int | None,
        micros: int = 0,
    ) -> int:
        if number is None:
            number = self._next
            self._next += 1
        node: Any = Node(id=number, type=kind, data_deps=dict.fromkeys(after), duration_micros=micros)
        try:
            for key, value in values.items():
                node.attr.add(name=key, int64_val=value)
            if group is not None:
                node.attr.add(name="pg_name", string_val=group)
        except ValueError as error:  # too large a number, or no text
            raise ChakraError(f"{self._where(number)}: cannot be played: {quoted(str(error))}") from error
        node.attr.add(name="is_cpu_op", bool_val=is_cpu)
        self._parts.append(framed(node))
        return number
