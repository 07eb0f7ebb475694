"""Sets of paths between the same two ends, readable as tuples and as one array."""

from collections.abc import Iterable, Iterator, Sequence
from typing import overload

import numpy as np
import numpy.typing as npt

from topologies.fabric import Path

NO_LINK = -1


class Paths(Sequence[Path]):
    """An immutable sequence of paths; equal to another one, or to a tuple, of the same paths in the same order.

    ``links`` has a row per path with its link numbers, padded with ``NO_LINK``. It is read-only, so that all flows
    between the same ends can share it. ``shortest`` is the number of links of the shortest path, ``highest_link`` the
    highest link number; both are -1 without paths. Raises ValueError for negative numbers.
    """

    __slots__ = ("__weakref__", "highest_link", "links", "shortest")

    links: npt.NDArray[np.int32]
    shortest: int
    highest_link: int

    def __init__(self, paths: Iterable[Path]) -> None:
        paths = tuple(paths)
        lengths = [len(path) for path in paths]
        self.shortest = min(lengths, default=NO_LINK)
        longest = max(lengths, default=0)
        rows = [path + (NO_LINK,) * (longest - len(path)) for path in paths]
        self.links = np.array(rows, dtype=np.int32).reshape(len(paths), longest)
        if np.count_nonzero(self.links >= 0) != sum(lengths):
            raise ValueError(f"link numbers must not be negative, in {paths}")
        self.links.flags.writeable = False
        self.highest_link = int(self.links.max(initial=NO_LINK))

    def __len__(self) -> int:
        return len(self.links)

    @overload
    def __getitem__(self, index: int) -> Path: ...
    @overload
    def __getitem__(self, index: slice) -> tuple[Path, ...]: ...
    def __getitem__(self, index: int | slice) -> Path | tuple[Path, ...]:
        if isinstance(index, slice):
            return tuple(self)[index]
        path = self.links[index].tolist()
        while path and path[-1] == NO_LINK:
            path.pop()
        return tuple(path)

    def __iter__(self) -> Iterator[Path]:
        return (self[index] for index in range(len(self)))

    def __eq__(self, other: object) -> bool:
        if isinstance(other, Paths):
            return self is other or np.array_equal(self.links, other.links)
        return tuple(self) == other

    def __hash__(self) -> int:
        return hash(tuple(self))

    def __repr__(self) -> str:
        return f"Paths({list(self)})"
