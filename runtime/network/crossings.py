"""Edges of a lowered program whose ends lie on different islands, and what they send from host to host.

The pieces of an edge that go from one host to another use one connection. Where shards are cut along different axes,
every source shard has a part of every destination shard, and all parts are equal: they are counted, not listed.
"""

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property

from runtime.arrays import ITEM_BYTES
from runtime.lowering.assign import CLIENT_HOST, Placement
from runtime.lowering.resharding import Piece, Resharding
from runtime.lowering.subprograms import Edge, LoweredProgram

Pair = tuple[int, int]
"""The number of a source host, and that of a destination host."""


@dataclass(frozen=True, eq=False)
class HostPairs:
    """Bytes by pair of hosts, ascending, between shards on ``source`` and shards on ``destination``.

    Pairs that are not on the fabric are not there.
    """

    resharding: Resharding
    source: Placement
    destination: Placement
    size_bytes: Mapping[Pair, int]

    @cached_property
    def positions(self) -> Mapping[Pair, int]:
        """The place of each pair in the order."""
        return {pair: position for position, pair in enumerate(self.size_bytes)}

    def position(self, source: int, destination: int) -> int:
        """Return the place of the pair that two shards belong to.

        Raises KeyError unless they meet, and their hosts are a pair on the fabric.
        """
        is_shard = 0 <= source < self.resharding.source.shards
        if not is_shard or destination not in self.resharding.destinations(source):
            raise KeyError((source, destination))
        return self.positions[self.source.hosts[source], self.destination.hosts[destination]]


@dataclass(frozen=True, eq=False, slots=True)
class Crossing:
    """An edge between islands, with what it sends from host to host."""

    edge: Edge
    pairs: HostPairs


def crossings(lowered: LoweredProgram, is_apart: Callable[[int, int], bool]) -> list[Crossing]:
    """Return the edges that send something over the fabric, in order.

    Arguments that come with the request do not. ``is_apart`` says of two hosts whether the fabric lies between them.
    """
    found: list[Crossing] = []
    known: dict[tuple[object, ...], HostPairs] = {}
    for edge in lowered.edges:
        source = lowered.placements[edge.source_placement]
        destination = lowered.placements[edge.destination_placement]
        if source.island == destination.island or CLIENT_HOST in source.hosts:
            continue
        # Edges of micro-batches are alike, and very many.
        key = (edge.spec, edge.source, edge.destination, edge.source_placement, edge.destination_placement)
        pairs = known.get(key)
        if pairs is None:
            pairs = known[key] = _pairs(edge.resharding, source, destination, is_apart)
        if pairs.size_bytes:
            found.append(Crossing(edge, pairs))
    return found


def _pairs(
    resharding: Resharding, source: Placement, destination: Placement, is_apart: Callable[[int, int], bool]
) -> HostPairs:
    item_bytes = ITEM_BYTES[resharding.spec.dtype]
    found: dict[Pair, int] = {}
    if resharding.source.axis not in (None, resharding.destination.axis):
        piece_bytes = _elements(resharding.piece(0, 0)) * item_bytes
        for source_host, sources in source.shards_by_host.items():
            for destination_host, destinations in destination.shards_by_host.items():
                found[source_host, destination_host] = len(sources) * len(destinations) * piece_bytes
    else:
        for shard, destination_host in enumerate(destination.hosts):
            for piece in resharding.pieces(shard):
                pair = source.hosts[piece.source], destination_host
                found[pair] = found.get(pair, 0) + _elements(piece) * item_bytes
    return HostPairs(resharding, source, destination, {pair: found[pair] for pair in sorted(found) if is_apart(*pair)})


def _elements(piece: Piece) -> int:
    return math.prod(part.stop - part.start for part in piece.source_slices)
