"""Transfers between M shards and N shards, by index ranges.

An edge of a program is never stored as M x N edges: both shardings, which are a few numbers, say which shards meet.
Where both cut the same axis, their blocks are intervals, and only neighbours meet. Where they cut different axes, every
source shard has a part of every destination shard. A copy is taken from one source, spread over them.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

from runtime.arrays import ArraySpec, Sharding


@dataclass(frozen=True, slots=True)
class Piece:
    """What one source shard sends to one destination shard, as slices of either shard, one for each axis."""

    source: int
    destination: int
    source_slices: tuple[slice, ...]
    destination_slices: tuple[slice, ...]


@dataclass(frozen=True)
class Resharding:
    """How an array goes from one sharding to another.

    The rows of ragged arrays have no place that is known beforehand. So these keep their sharding, or are gathered:
    each destination shard gets the shards of the source, one after another. Raises ValueError for anything else.
    """

    spec: ArraySpec
    source: Sharding
    destination: Sharding

    def __post_init__(self) -> None:
        if self.spec.is_ragged and self.destination not in (self.source, Sharding(None, self.destination.shards)):
            raise ValueError(
                f"{self.spec} is ragged: it goes as it lies, {self.source}, or whole, not as {self.destination}"
            )

    @cached_property
    def is_identity(self) -> bool:
        """Whether shard i of the destination is shard i of the source."""
        return self.source == self.destination

    def sources(self, destination: int) -> range:
        """Return the source shards of which a destination shard takes pieces."""
        if self.source.axis is None:
            first = destination % self.source.shards
            return range(first, first + 1)
        if self.source.axis != self.destination.axis:
            return range(self.source.shards)
        return _meeting(self.destination, self.source, destination)

    def destinations(self, source: int) -> range:
        """Return the destination shards that take pieces of a source shard."""
        if self.source.axis is None:
            return range(source, self.destination.shards, self.source.shards)
        if self.source.axis != self.destination.axis:
            return range(self.destination.shards)
        return _meeting(self.source, self.destination, source)

    def piece(self, source: int, destination: int) -> Piece:
        """Return what ``source`` sends to ``destination``, which must meet."""
        taken = _box(self.spec, self.source, source)
        wanted = _box(self.spec, self.destination, destination)
        common = [
            range(max(one.start, other.start), min(one.stop, other.stop))
            for one, other in zip(taken, wanted, strict=True)
        ]
        return Piece(source, destination, _within(common, taken), _within(common, wanted))

    def pieces(self, destination: int) -> Iterator[Piece]:
        """Yield the pieces of a destination shard."""
        for source in self.sources(destination):
            yield self.piece(source, destination)


def _meeting(given: Sharding, other: Sharding, shard: int) -> range:
    """Return the blocks of ``other`` that meet a block of ``given``, where both cut the same axis."""
    first = shard * other.shards // given.shards
    last = -(-(shard + 1) * other.shards // given.shards)
    return range(first, last)


def _box(spec: ArraySpec, sharding: Sharding, shard: int) -> list[range]:
    box = [range(size) for size in spec.shape]
    if sharding.axis is not None:
        box[sharding.axis] = sharding.indices(spec, shard)
    return box


def _within(common: list[range], box: list[range]) -> tuple[slice, ...]:
    return tuple(slice(part.start - all_.start, part.stop - all_.start) for part, all_ in zip(common, box, strict=True))
