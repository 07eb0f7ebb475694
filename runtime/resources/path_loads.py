"""How loaded the network between islands is, as far as anybody knows: among equal islands it decides."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class PathLoads:
    """The loads of the paths between islands, as shares of their rates; infinite where no path is left.

    Attributes:
        between: By the names of two islands. Those that are not listed count as having an idle path.
    """

    between: Mapping[frozenset[str], float] = field(default_factory=dict)

    def to(self, islands: Iterable[str], island: str) -> float:
        """Return the sum over the paths between one island and others; an island needs no path to itself."""
        return sum(self.between.get(frozenset((island, other)), 0.0) for other in islands if other != island)
