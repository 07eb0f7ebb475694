"""What the server tells clients: answers to their requests, with the number of the request."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from runtime.arrays import ArraySpec, Sharding
from runtime.messages.everybody import Failure
from runtime.substrates.interface import HostSettings


@dataclass(frozen=True, slots=True)
class Welcome:
    """The server takes the client in, under this number."""

    client: int


@dataclass(frozen=True, slots=True)
class SliceAdded:
    """A slice is there."""

    request: int
    number: int
    island: str
    size: int


@dataclass(frozen=True, slots=True)
class Refused:
    """A request was refused; without a request the whole connection is."""

    request: int | None
    message: str


@dataclass(frozen=True, slots=True)
class Managed:
    """It is done, for so many connections."""

    request: int
    connections: int


@dataclass(frozen=True, slots=True)
class Done:
    """It is done."""

    request: int


@dataclass(frozen=True, slots=True)
class OpenedArray:
    """An array that somebody published: the handle under which the client holds it, and what it is."""

    handle: int
    spec: ArraySpec
    sharding: Sharding


@dataclass(frozen=True, slots=True)
class Opened:
    """The client holds what somebody published."""

    request: int
    structure: Any
    arrays: tuple[OpenedArray, ...]


@dataclass(frozen=True, slots=True)
class HostAdmitted:
    """The executor of a host that joins may be started with these settings; HostAdded follows once it is there."""

    request: int
    settings: HostSettings


@dataclass(frozen=True, slots=True)
class HostAdded:
    """A host has joined."""

    request: int
    host: int


@dataclass(frozen=True, slots=True)
class HostRemoved:
    """A host has left, and so many arrays have moved from it to others."""

    request: int
    arrays: int


@dataclass(frozen=True, slots=True)
class Fetched:
    """A shard of an array that was asked for; the payload is its data.

    ``rows`` are those of the largest shard where no bound was known beforehand and no data were asked for, or -1.
    """

    request: int
    shard: int
    rows: int = -1


@dataclass(frozen=True, slots=True)
class FetchFailed:
    """There is no such array, and there will not be."""

    request: int
    failure: Failure


@dataclass(frozen=True, slots=True)
class Status:
    """The state of the runtime, for people."""

    request: int
    status: Mapping[str, Any]
