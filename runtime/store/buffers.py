"""Handles, and the sharded logical buffers behind them."""

from collections import deque
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, NamedTuple

if TYPE_CHECKING:
    from runtime.store.allocations import Allocation

HOST: Final = -1
"""The host's own memory; the memory of a device has the number of the device."""


class Handle(NamedTuple):
    """The opaque name of a logical buffer, made by a client: its bytes may move, the name stays.

    Attributes:
        owner: The client that made it.
        number: Unique among its handles.
    """

    owner: str
    number: int

    def __str__(self) -> str:
        return f"{self.owner}/{self.number}"


class Owner(NamedTuple):
    """Who holds references: a client, or one execution of a program of it.

    Attributes:
        client: The client.
        execution: The program execution; None for the client itself, which covers all its executions.
    """

    client: str
    execution: int | None = None

    def covers(self, other: "Owner") -> bool:
        """Return whether what the other holds goes when this one goes."""
        return self.client == other.client and self.execution in (None, other.execution)

    def __str__(self) -> str:
        return self.client if self.execution is None else f"{self.client}, execution {self.execution}"


@dataclass(frozen=True, slots=True)
class NewShard:
    """A shard to be allocated: which one, how many bytes, and in which memory."""

    handle: Handle
    shard: int
    size_bytes: int
    memory: int


@dataclass(frozen=True, slots=True)
class InputShard:
    """A shard that a computation takes: which one, and the memory in which it must be."""

    handle: Handle
    shard: int
    memory: int


class Shard:
    """A shard of a logical buffer on this host.

    Attributes:
        buffer: The buffer.
        number: Which shard of it.
        size_bytes: Its size.
        memory: Where it is, or is moved from; None before it is allocated.
        destination: Where it is being moved to.
        num_pins: How many computations use it where it is: it stays there meanwhile.
        claims: The allocations that wait for it, in order of arrival.
    """

    __slots__ = ("buffer", "claims", "destination", "memory", "num_pins", "number", "size_bytes")

    def __init__(self, buffer: "LogicalBuffer", number: int, size_bytes: int) -> None:
        self.buffer = buffer
        self.number = number
        self.size_bytes = size_bytes
        self.memory: int | None = None
        self.destination: int | None = None
        self.num_pins = 0
        self.claims: deque[Allocation] = deque()

    def __str__(self) -> str:
        return f"{self.buffer.handle} shard {self.number}"


class LogicalBuffer:
    """A sharded buffer: references are counted for all of its shards at once.

    Attributes:
        handle: Its name.
        references: By owner, how many references it holds. The bytes are accounted to the first.
        shards: Its shards on this host, by number.
        num_uses: Allocations and moves under way that name it: its bytes stay until they have ended.
    """

    __slots__ = ("handle", "num_uses", "references", "shards")

    def __init__(self, handle: Handle) -> None:
        self.handle = handle
        self.references: dict[Owner, int] = {}
        self.shards: dict[int, Shard] = {}
        self.num_uses = 0

    @property
    def owner(self) -> Owner | None:
        """To whom the bytes are accounted; None where only computations under way still need them."""
        return next(iter(self.references), None)
