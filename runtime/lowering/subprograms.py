"""Second pass: transfers are inserted, and each host gets the part of the program that touches it.

What a host gets depends only on the slices that it belongs to. So hosts of the same slices share one ``Subprogram``,
and lowering takes time by calls and slices, not by hosts and shards. Each host then reads its own shards out of it
(``HostPlan``), at the same time as all others.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from runtime.arrays import ArraySpec, Sharding
from runtime.lowering.assign import CLIENT_HOST, Layout, Placement, placements_of
from runtime.lowering.resharding import Piece, Resharding
from runtime.program import Call, Program, Value


@dataclass(frozen=True)
class PlacedCall:
    """A call with its node and the number of its placement."""

    node: int
    call: Call
    placement: int


Taker = tuple[int, int]
"""The node of a call, and the position of one of its inputs."""


@dataclass(frozen=True)
class Edge:
    """A value on its way to a placement; placements by number.

    It goes there once, in one sharding: ``takers`` are all inputs that take it so, in the order of the calls.
    """

    number: int
    value: Value
    spec: ArraySpec
    source: Sharding
    source_placement: int
    destination: Sharding
    destination_placement: int
    takers: tuple[Taker, ...]

    @property
    def first_node(self) -> int:
        """The call that takes it first: those of one placement run in the order of the program."""
        return self.takers[0][0]

    @property
    def resharding(self) -> Resharding:
        """How shards of the source become shards of the destination."""
        return Resharding(self.spec, self.source, self.destination)


@dataclass(frozen=True)
class Subprogram:
    """The part of a lowered program that touches one set of hosts."""

    name: str
    calls: tuple[PlacedCall, ...]
    edges: tuple[Edge, ...]
    placements: Mapping[int, Placement]


@dataclass(frozen=True, eq=False)
class LoweredProgram:
    """A program on physical devices: its subprograms, and which of them each host gets.

    Hosts come in the order in which others wait for them: those that have an argument first, then by their first calls.
    """

    program: Program
    calls: tuple[PlacedCall, ...]
    edges: tuple[Edge, ...]
    placements: tuple[Placement, ...]
    subprograms: tuple[Subprogram, ...]
    subprogram_of_host: Mapping[int, int]

    def placement(self, node: int) -> Placement:
        """Return where the call of a node runs."""
        return self.placements[self.calls[node - len(self.program.arguments)].placement]

    def layout(self, value: Value) -> Layout:
        """Return how the output of a call lies."""
        return Layout(self.program.call(value.node).outputs[value.output].sharding, self.placement(value.node))


def lower(program: Program, slices: Mapping[int, Placement], arguments: Sequence[Layout]) -> LoweredProgram:
    """Lower a program: assign devices, insert transfers, and cut it into subprograms.

    ``arguments`` says how each argument lies. Raises ValueError as ``placements_of``, and for a ragged array that would
    be cut anew.
    """
    table = _Table()
    for each in arguments:
        table.number(each.placement)
    of_calls = placements_of(program, slices)
    nodes = zip(program.nodes(), of_calls, strict=True)
    calls = tuple(PlacedCall(node, call, table.number(placement)) for (node, call), placement in nodes)
    edges = tuple(_edges(program, calls, arguments, table))
    numbers: dict[frozenset[int], int] = {}
    of_host = {
        host: numbers.setdefault(frozenset(taking_part), len(numbers))
        for host, taking_part in table.placements_by_host().items()
        if host != CLIENT_HOST
    }
    placements = tuple(table.placements)
    subprograms = tuple(_subprogram(program.name, numbers_, calls, edges, placements) for numbers_ in numbers)
    return LoweredProgram(program, calls, edges, placements, subprograms, of_host)


class _Table:
    """Placements by number, each once."""

    def __init__(self) -> None:
        self.placements: list[Placement] = []
        self._numbers: dict[int, int] = {}

    def number(self, placement: Placement) -> int:
        number = self._numbers.setdefault(id(placement), len(self.placements))
        if number == len(self.placements):
            self.placements.append(placement)
        return number

    def placements_by_host(self) -> dict[int, set[int]]:
        found: dict[int, set[int]] = {}
        for number, placement in enumerate(self.placements):
            for host in placement.shards_by_host:
                found.setdefault(host, set()).add(number)
        return found


def _edges(program: Program, calls: Sequence[PlacedCall], arguments: Sequence[Layout], table: _Table) -> Iterator[Edge]:
    sources = [(each.sharding, table.number(each.placement)) for each in arguments]
    takers: dict[tuple[Value, Sharding, int], list[Taker]] = {}
    for placed in calls:
        for position, given in enumerate(placed.call.inputs):
            taken = given.value, given.sharding, placed.placement
            takers.setdefault(taken, []).append((placed.node, position))
    for number, ((value, sharding, placement), inputs) in enumerate(takers.items()):
        if value.node < len(arguments):
            source, source_placement = sources[value.node]
        else:
            maker = calls[value.node - len(arguments)]
            source, source_placement = maker.call.outputs[value.output].sharding, maker.placement
        spec, to = program.spec(value), (sharding, placement)
        edge = Edge(number, value, spec, source, source_placement, *to, tuple(inputs))
        try:
            _ = edge.resharding  # raises where there is none
        except ValueError as error:
            raise ValueError(f"{program.name}: {program.call(edge.first_node).name}: {error}") from None
        yield edge


def _subprogram(
    name: str,
    taking_part: frozenset[int],
    calls: Sequence[PlacedCall],
    edges: Sequence[Edge],
    placements: Sequence[Placement],
) -> Subprogram:
    mine = tuple(placed for placed in calls if placed.placement in taking_part)
    touching = tuple(
        each for each in edges if each.source_placement in taking_part or each.destination_placement in taking_part
    )
    used = {each.source_placement for each in touching} | {each.destination_placement for each in touching}
    return Subprogram(name, mine, touching, {number: placements[number] for number in sorted(used | taking_part)})


@dataclass(frozen=True)
class Send:
    """A piece of a local shard on its way to a shard of an edge; ``is_whole`` where it is all of both shards."""

    edge: int
    host: int
    piece: Piece
    is_whole: bool


@dataclass(frozen=True)
class Receipt:
    """A local shard of an edge, which its takers wait for: pieces from so many ``sources`` make an array of ``shape``.

    ``is_direct`` where the one piece is the shard. ``is_in_place`` where that lies on the device of the shard already.
    """

    edge: Edge
    shard: int
    sources: int
    shape: tuple[int, ...]
    is_direct: bool
    is_in_place: bool

    @property
    def size_bytes(self) -> int:
        """Bytes of the shard."""
        return ArraySpec(self.shape, self.edge.spec.dtype).size_bytes


class HostPlan:
    """A subprogram as one host runs it: its own shards, what each waits for, and where its outputs go.

    ``shards`` are the local (shard, device) pairs of each call by node, ``places`` the (host, device) pairs of all its
    shards, ``receipts`` what each (edge, shard) waits for, and ``sends`` what becomes of each (value, shard) that is
    made or kept here.
    """

    def __init__(self, subprogram: Subprogram, host: int) -> None:
        self.host = host
        self.name = subprogram.name
        self.calls: dict[int, Call] = {}
        self.shards: dict[int, tuple[tuple[int, int], ...]] = {}
        self.places: dict[int, tuple[tuple[int, int], ...]] = {}
        self.receipts: dict[tuple[int, int], Receipt] = {}
        self.inputs: dict[int, list[int]] = {}
        self.sends: dict[tuple[Value, int], list[Send]] = {}
        for placed in subprogram.calls:
            placement = subprogram.placements[placed.placement]
            local = placement.shards_by_host.get(host, ())
            if local:
                self.calls[placed.node] = placed.call
                self.shards[placed.node] = tuple((shard, placement.devices[shard]) for shard in local)
                self.places[placed.node] = tuple(zip(placement.hosts, placement.devices, strict=True))
                self.inputs[placed.node] = [-1] * len(placed.call.inputs)
        for edge in subprogram.edges:
            self._add(edge, subprogram.placements)

    def local(self, value: Value, shard: int) -> list[Send]:
        """Return which local inputs take a part of a local shard."""
        return [send for send in self.sends.get((value, shard), ()) if send.host == self.host]

    def _add(self, edge: Edge, placements: Mapping[int, Placement]) -> None:
        resharding = edge.resharding
        source, destination = placements[edge.source_placement], placements[edge.destination_placement]
        whole_source = edge.source.shard_spec(edge.spec).shape
        whole_destination = edge.destination.shard_spec(edge.spec).shape
        for shard in destination.shards_by_host.get(self.host, ()):
            sources = resharding.sources(shard)
            is_direct = len(sources) == 1 and _covers(
                resharding.piece(sources[0], shard).destination_slices, whole_destination
            )
            is_in_place = is_direct and (source.hosts[sources[0]], source.devices[sources[0]]) == (
                self.host,
                destination.devices[shard],
            )
            self.receipts[edge.number, shard] = Receipt(
                edge, shard, len(sources), whole_destination, is_direct, is_in_place
            )
            for node, position in edge.takers:
                self.inputs[node][position] = edge.number
        for shard in source.shards_by_host.get(self.host, ()):
            sends = self.sends.setdefault((edge.value, shard), [])
            for to in resharding.destinations(shard):
                piece = resharding.piece(shard, to)
                is_whole = _covers(piece.source_slices, whole_source) and _covers(
                    piece.destination_slices, whole_destination
                )
                sends.append(Send(edge.number, destination.hosts[to], piece, is_whole))

    def __str__(self) -> str:
        lines = [f"host {self.host} of {self.name} {{"]
        for node, call in self.calls.items():
            places = ", ".join(f"shard {shard} on device {device}" for shard, device in self.shards[node])
            lines.append(f"  %{node} = {call.name}: {places}")
        for (edge, shard), receipt in self.receipts.items():
            inputs = " and ".join(f"input {position} of %{node}" for node, position in receipt.edge.takers)
            what = f"{receipt.edge.value} for {inputs}"
            lines.append(f"  edge {edge} shard {shard}: {what}, {receipt.sources} pieces")
        for (value, shard), sends in self.sends.items():
            for send in sends:
                part = "all" if send.is_whole else _text(send.piece.source_slices)
                lines.append(
                    f"  send {part} of {value} shard {shard} to host {send.host} as edge {send.edge} shard "
                    f"{send.piece.destination}"
                )
        return "\n".join((*lines, "}"))


def _covers(slices: Sequence[slice], shape: Sequence[int]) -> bool:
    return all(each.start == 0 and each.stop == size for each, size in zip(slices, shape, strict=True))


def _text(slices: Sequence[slice]) -> str:
    return "[" + ", ".join(f"{each.start}:{each.stop}" for each in slices) + "]"
