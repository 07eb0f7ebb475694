"""What the server tells executors: what to run, to move to each other and to give up."""

from collections.abc import Mapping
from dataclasses import dataclass

from runtime.arrays import ArraySpec
from runtime.lowering.subprograms import Subprogram
from runtime.messages.client_to_server import RegisterFunction
from runtime.messages.everybody import Failure, Place


@dataclass(frozen=True, slots=True)
class Peers:
    """Where the executors of all hosts listen."""

    places: Mapping[int, Place]


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
    order. ``groups`` is the generation of the client's groups for collectives. ``is_awaited`` says that the client asks
    for a result at once. Pieces of arguments that came with the request follow.
    """

    execution: int
    client: int
    subprogram: int
    arguments: Mapping[int, int]
    results: tuple[tuple[int, int, int], ...]
    grants: tuple[tuple[int, int], ...]
    groups: int = 0
    is_awaited: bool = False


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


@dataclass(frozen=True, slots=True)
class FlowToOpen:
    """A flow of a subprogram, by a number of the server's: what an edge sends from this host to another one."""

    number: int
    edge: int
    host: int


@dataclass(frozen=True, slots=True)
class OpenFlows:
    """Flows of a subprogram get connections of their own."""

    subprogram: int
    flows: tuple[FlowToOpen, ...]


@dataclass(frozen=True, slots=True)
class CloseFlows:
    """Nothing is sent on these flows of a subprogram any more."""

    subprogram: int
    flows: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class FlowRank:
    """At which level a flow sends, 7 the most urgent, how fast at most, if there is a limit, and from which port.

    The answer, FlowSteered, comes only where it cannot have that port, and once it has it after all.
    """

    number: int
    level: int
    rate_bps: float | None
    source_port: int


@dataclass(frozen=True, slots=True)
class RankFlows:
    """How flows send from now on."""

    flows: tuple[FlowRank, ...]
