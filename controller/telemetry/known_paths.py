"""What is known of one path between two NICs, and of a source port that may lead along it."""

import math
from collections.abc import Iterator, Set
from dataclasses import dataclass, field

from hostlib.wire.sequence_window import SequenceWindow
from topologies.fabric import Path

PORTS_PER_PATH = 2
"""Ports that are kept known for each path, beside those that flows have: there may be more flows than one."""


class KnownPort:
    """What reports say of a source port: the path that is believed, and the one that the last of them told."""

    __slots__ = ("agreeing", "believed", "routing", "seen_s", "told", "window")

    def __init__(self, told: "KnownPath", routing: int) -> None:
        self.believed: KnownPath | None = None
        self.told = told
        self.agreeing = 0
        self.seen_s = -math.inf
        """When a probe has last come by the path that is believed."""
        self.window = SequenceWindow()
        self.routing = routing
        """Which routing of the fabric it was that had it lead there."""


@dataclass(slots=True, eq=False)
class KnownPath:
    """A path that is allowed: when a probe has last come by it, and the ports by which one would."""

    path: Path
    seen_s: float | None = None
    ports: dict[int, KnownPort] = field(default_factory=dict)
    """Those that lead along it, or do by the last report, where none is believed."""
    has_enough: bool = False
    """Whether there are as many ports as are kept known, beside those that flows have."""
    is_dead: bool = False
    """Whether it crosses a link that is known to be dead."""

    def leading(self) -> Iterator[tuple[int, KnownPort]]:
        """The ports that are believed to lead along it."""
        return ((port, known) for port, known in self.ports.copy().items() if known.believed is self)

    def count(self, pinned: Set[int]) -> None:
        """Its ports have changed, or those that flows have."""
        self.has_enough = len(self.ports.keys() - pinned) >= PORTS_PER_PATH

    def has_enough_without(self, port: int, pinned: Set[int]) -> bool:
        """Whether there are as many without this one, all of them believed."""
        return sum(other != port and other not in pinned for other, _ in self.leading()) >= PORTS_PER_PATH
