"""What executors tell the server, or each other by way of it."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from runtime.messages.everybody import Failure


@dataclass(frozen=True, slots=True)
class ShardTaken:
    """A shard has come from another host, or was lost on its way."""

    move: int
    is_there: bool


@dataclass(frozen=True, slots=True)
class ShardFetched:
    """A shard that was asked for; the payload is its data."""

    request: int
    shard: int


@dataclass(frozen=True, slots=True)
class ShardFailed:
    """A shard that was asked for is not there, and will not be."""

    request: int
    failure: Failure


@dataclass(frozen=True, slots=True)
class Sized:
    """A shard of which no bound was known is there with so many rows, or will not be: then they are -1."""

    client: int
    handle: int
    shard: int
    rows: int


@dataclass(frozen=True, slots=True)
class GroupsBroken:
    """Shards of a client failed in a collective call: executions from now on need a new generation of groups."""

    client: int
    generation: int


@dataclass(frozen=True, slots=True)
class Usage:
    """What a host holds and runs."""

    request: int
    usage: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class ConnectionEnded:
    """Tells ``host`` that the connection of another host to it has ended, and why.

    ``pieces`` are those that may not have arrived, as execution, edge, destination and source shard; ``first`` is the
    number of the first one on the connection. ``loans`` are those that ``host`` has not returned. The answer is
    LoansReturned, for each loan once.
    """

    host: int
    sender: int
    connection: int
    first: int
    pieces: tuple[tuple[int, int, int, int], ...]
    loans: tuple[int, ...]
    cause: str


@dataclass(frozen=True, slots=True)
class LoansReturned:
    """Tells ``host`` that nobody reads any more what it has lent on a connection that has ended."""

    host: int
    connection: int
    loans: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class RunStalled:
    """A run has waited for memory of this host for some time; or it goes on."""

    execution: int
    is_stalled: bool


@dataclass(frozen=True, slots=True)
class FlowSteered:
    """A flow sends from the port that it was told to; or not, and ``cause`` says why."""

    number: int
    source_port: int
    cause: str
