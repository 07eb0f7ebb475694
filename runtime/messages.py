"""The messages of the runtime, by who sends them.

Each is a frozen dataclass. It travels as JSON (``codec``), or as whole numbers where it is sent for every run
(``words``). A client sends one ``Execute`` for a program, and the server one ``Run`` to each host that takes part.
"""

import json
import struct
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from runtime.arrays import ArraySpec, Sharding
from runtime.codec import MalformedError, decode_plain, plain_fields
from runtime.errors import CAUSES, LostError, RuntimeFailure
from runtime.lowering.subprograms import Subprogram
from runtime.program import Program
from runtime.resources.slices import Constraints
from runtime.scheduling.gangs import MAX_COST_S
from runtime.substrates.interface import HostSettings, NewHost
from runtime.words import from_words, to_words

VERSION = 1
"""Of these messages; processes of different versions do not talk."""


@dataclass(frozen=True, slots=True)
class Failure:
    """Why there is no result: the name of an error of ``runtime.errors``, and its message."""

    kind: str
    message: str

    def error(self) -> RuntimeFailure:
        """Return it as an exception."""
        return CAUSES.get(self.kind, LostError)(self.message)


# Everybody's first message


@dataclass(frozen=True, slots=True)
class Hello:
    """Who speaks. ``role`` is client or executor, ``name`` a client's name or a host's number.

    Hosts number their connections to each other, so that they can speak of a ``connection`` that has ended.
    """

    version: int
    role: str
    name: str
    token: str
    address: str = ""
    connection: int = 0


# Client to server


@dataclass(frozen=True, slots=True)
class AddSlice:
    """Asks for a virtual slice in a set that the client numbers; the answer is SliceAdded or Refused."""

    request: int
    device_set: int
    devices: int | None
    shape: tuple[int, ...] | None
    island: str | None
    constraints: Constraints


@dataclass(frozen=True, slots=True)
class RegisterFunction:
    """Makes a function known. ``description`` is what ``sources.described`` returns; timers have none."""

    number: int
    name: str
    library: str
    duration_s: float | None
    description: Mapping[str, Any] | None
    is_collective: bool = False

    def __post_init__(self) -> None:
        if self.duration_s is not None and not 0 <= self.duration_s <= MAX_COST_S:
            raise ValueError(f"{self.name}: duration_s: must be from 0 to {MAX_COST_S:g}, not {self.duration_s}")


@dataclass(frozen=True, slots=True)
class RegisterProgram:
    """Makes a program known; its calls name functions by their place in ``functions``."""

    number: int
    program: Program
    functions: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Execute:
    """Runs a program. There is no answer: results are asked for by their handles.

    ``arguments`` are handles, or -1 for arguments whose data are in the payload, one after another. ``results`` are the
    handles that the results get, which the client numbers itself. ``need_ns`` is in how many nanoseconds they are
    needed, or -1 where that is not known.
    """

    program: int
    arguments: tuple[int, ...]
    results: tuple[int, ...]
    need_ns: int = -1


@dataclass(frozen=True, slots=True)
class Release:
    """The client no longer needs these handles."""

    handles: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Fetch:
    """Asks for an array, or only for its being there; each shard comes as a Fetched, or there is one FetchFailed."""

    request: int
    handle: int
    data: bool


@dataclass(frozen=True, slots=True)
class AskStatus:
    """Asks for the state of the runtime, with what devices ran if ``trace`` says so; the answer is Status."""

    request: int
    trace: bool


@dataclass(frozen=True, slots=True)
class Manage:
    """Asks an operator's favour: ``action`` is suspend, resume or migrate. The answer is Managed or Refused.

    ``client`` is a client's label, or the name that all of its connections share; ``island`` is where migrate moves it.
    """

    request: int
    action: str
    client: str
    island: str | None


@dataclass(frozen=True, slots=True)
class AddHost:
    """Asks an operator's favour: a host that joins an island. The answer is HostAdded or Refused.

    ``is_by_hand`` says that who asks starts the executor; HostAdmitted says with which settings.
    """

    request: int
    host: NewHost
    is_by_hand: bool


@dataclass(frozen=True, slots=True)
class RemoveHost:
    """Asks an operator's favour: a host that leaves, once nothing needs it. The answer is HostRemoved or Refused."""

    request: int
    host: int


@dataclass(frozen=True, slots=True)
class Publish:
    """Lets others read arrays, nested as ``structure`` says, by a name. The answer is Done or Refused."""

    request: int
    name: str
    handles: tuple[int, ...]
    structure: Any


@dataclass(frozen=True, slots=True)
class Withdraw:
    """Ends that others can open what was published by a name. The answer is Done or Refused."""

    request: int
    name: str


@dataclass(frozen=True, slots=True)
class OpenPublished:
    """Asks for handles of what somebody published by a name; the answer is Opened or Refused."""

    request: int
    name: str


# Server to client


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


# Server to executor


@dataclass(frozen=True, slots=True)
class Peers:
    """Where the executors of all hosts listen."""

    addresses: Mapping[int, str]


@dataclass(frozen=True, slots=True)
class LoadFunction:
    """Makes a function of a client known to a host, under a number of the server's."""

    number: int
    function: RegisterFunction


@dataclass(frozen=True, slots=True)
class LoadSubprogram:
    """Makes the host's part of a lowered program known; its calls name functions by their place in ``functions``."""

    number: int
    subprogram: Subprogram
    functions: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Run:
    """Runs a subprogram.

    ``arguments`` are the handles of arguments by node, ``results`` pairs of node and output with their handle, also
    those of other hosts. ``grants`` are the first and last nodes of stretches that may be enqueued already, in this
    order. ``groups`` is the generation of the client's groups for collectives. Pieces of arguments that came with the
    request follow.
    """

    execution: int
    client: int
    subprogram: int
    arguments: Mapping[int, int]
    results: tuple[tuple[int, int, int], ...]
    grants: tuple[tuple[int, int], ...]
    groups: int = 0


@dataclass(frozen=True, slots=True)
class Abort:
    """An execution will never finish: what it has not computed fails."""

    execution: int
    failure: Failure


@dataclass(frozen=True, slots=True)
class ReleaseOn:
    """A client no longer needs these handles."""

    client: int
    handles: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class DropClient:
    """A client is gone: what belongs to it goes too, also the functions and subprograms loaded for it."""

    client: int
    failure: Failure
    functions: tuple[int, ...]
    subprograms: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class FetchShard:
    """Asks for a shard, once it is there; the answer is ShardFetched or ShardFailed."""

    request: int
    client: int
    handle: int
    shard: int
    data: bool


@dataclass(frozen=True, slots=True)
class ShareOn:
    """Another client, the reader, holds an array too, under a handle of its own; nobody may change it any more."""

    client: int
    handle: int
    reader: int
    reader_handle: int


@dataclass(frozen=True, slots=True)
class TakeShard:
    """A shard of an array comes from another host, and is held from now on; ShardTaken says whether it came."""

    move: int
    client: int
    handle: int
    shard: int
    spec: ArraySpec
    device: int


@dataclass(frozen=True, slots=True)
class GiveShard:
    """A shard goes to another host, once it is there; the host keeps its own until it is released."""

    move: int
    client: int
    handle: int
    shard: int
    host: int


@dataclass(frozen=True, slots=True)
class ForgetShards:
    """Shards that came from another host, or were going to, are needed no more."""

    client: int
    handle: int
    shards: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class AskUsage:
    """Asks a host what it holds and runs, and what it ran if ``trace`` says so; the answer is Usage."""

    request: int
    trace: bool


# Executor to server


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


# Executor to executor, by way of the server


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


# Executor to server, for people


@dataclass(frozen=True, slots=True)
class Usage:
    """What a host holds and runs."""

    request: int
    usage: Mapping[str, Any]


_BY_NAME = {
    each.__name__: each
    for each in (
        *(Failure, Hello, AddSlice, RegisterFunction, RegisterProgram, AskStatus, Manage, AddHost, RemoveHost),
        *(Publish, Withdraw, OpenPublished),
        *(Welcome, SliceAdded, Refused, Managed, HostAdmitted, HostAdded, HostRemoved, FetchFailed, Status),
        *(Done, Opened),
        *(Peers, LoadFunction, LoadSubprogram, Abort, DropClient, AskUsage),
        *(ShareOn, TakeShard, GiveShard, ForgetShards),
        *(ShardFailed, ShardTaken, GroupsBroken, ConnectionEnded, LoansReturned, Usage),
    )
}


_OF_WORDS = (Execute, Release, Fetch, Fetched, Run, ReleaseOn, FetchShard, ShardFetched, Sized)
"""Messages of every run. Their headers begin with their place in this row, those of others with a bracket."""
_WORD = struct.Struct("!q")
_SUBPROGRAM_AT = 1 + 2 * _WORD.size
_PLACES = {kind: bytes((place,)) for place, kind in enumerate(_OF_WORDS)}


def encode(message: object) -> bytes:
    """Return a message as the header of a frame."""
    place = _PLACES.get(type(message))
    if place is not None:
        return place + to_words(message)
    return json.dumps([type(message).__name__, message], default=plain_fields, separators=(",", ":")).encode()


def encoded_runs(run: Run, subprograms: Sequence[int]) -> Iterator[bytes]:
    """Yield a Run as the header of a frame for each of several subprograms: nothing else differs."""
    header = bytearray(encode(run))
    for number in subprograms:
        _WORD.pack_into(header, _SUBPROGRAM_AT, number)
        yield bytes(header)


def decode(header: bytes) -> object:
    """Return the message that a header is. Raises MalformedError."""
    if header and header[0] < len(_OF_WORDS):
        return from_words(_OF_WORDS[header[0]], header[1:])
    try:
        name, plain = json.loads(header)
    except (ValueError, TypeError, RecursionError):
        raise MalformedError("expected a message") from None
    kind = _BY_NAME.get(name) if isinstance(name, str) else None
    if kind is None:
        raise MalformedError(f"there is no message {name!r:.50}")
    return decode_plain(kind, plain)
