"""Record which source ports of a pair of NICs lead along which candidate path, as probes report it."""

import math
from collections.abc import Iterable, Iterator, Mapping, Set
from dataclasses import dataclass, field
from enum import Enum, StrEnum, auto

from hostlib.telemetry.prober import CONFIRMATIONS
from hostlib.wire.sequence_window import Arrival, SequenceWindow
from topologies.addressing import FIRST_SOURCE_PORT, LAST_SOURCE_PORT
from topologies.fabric import Path

REPORTS_TO_CONFIRM = CONFIRMATIONS + 1
"""Consecutive reports that must agree on the path of a port before the table believes it, at first or after a move."""

PORTS_PER_PATH = 2
"""Spare ports kept for each path beside those of flows, as several flows may want the path."""


class Freshness(StrEnum):
    """Whether a candidate path is known to work."""

    FRESH = "fresh"
    STALE = "stale"
    UNSEEN = "unseen"
    BLACK_HOLE = "black hole"
    """Every probe that the pair sends along the path is lost, though other probes arrive over the path's links."""


@dataclass(frozen=True, slots=True)
class Candidate:
    """A path that ECMP can give to a pair, and the fresh source ports that lead along it, lowest first.

    ``age_s`` is the time since the last probe by this path, None if there was none. ``loss`` is the share of recent
    probes (at most 256 a port) that were lost.
    """

    path: Path
    freshness: Freshness
    source_ports: tuple[int, ...]
    age_s: float | None
    loss: float


class Outcome(Enum):
    """How a probe compares with what the table believed of its port."""

    IGNORED = auto()
    """The table does not keep the port."""
    UNCONFIRMED = auto()
    """The path of the port is not known, or the fabric has been rerouted since it was."""
    ELSEWHERE = auto()
    """The probe took another path than the believed one, though the routing is the same."""
    EXPECTED = auto()
    """The probe took the believed path."""
    MOVED = auto()
    """The same, and this probe was the one that confirmed a new path for a port that a flow uses."""
    FORGOTTEN = auto()
    """The probe confirmed a new path for a spare port, of which that path has enough: the port is forgotten."""


# Looking up a member of an enum takes long, and this is done for every probe.
IGNORED, UNCONFIRMED, ELSEWHERE, EXPECTED, MOVED, FORGOTTEN = Outcome
_NEW, _JUMP, _TOO_OLD = Arrival.NEW, Arrival.JUMP, Arrival.TOO_OLD


class PortEntry:
    """A source port: the path that it is believed to lead along, and the path that the last probe took."""

    __slots__ = ("agreeing", "believed", "reported", "routing", "seen_s", "window")

    def __init__(self, reported: "PathEntry", routing: int) -> None:
        self.believed: PathEntry | None = None
        self.reported = reported
        self.agreeing = 0
        """Consecutive probes that took the reported path; counted only until it is believed."""
        self.seen_s = -math.inf
        """When a probe last took the believed path."""
        self.window = SequenceWindow()
        self.routing = routing
        """The number of the routing under which the port was last seen to lead there."""


@dataclass(slots=True, eq=False)
class PathEntry:
    """A candidate path: when a probe last took it, and its ports."""

    path: Path
    seen_s: float | None = None
    ports: dict[int, PortEntry] = field(default_factory=dict)
    """Ports believed to lead along the path, or last reported to where nothing is believed yet."""
    has_enough: bool = False
    """Whether it has PORTS_PER_PATH ports beside those of flows."""
    is_dead: bool = False
    """Whether it crosses a dead link."""

    def leading(self) -> Iterator[tuple[int, PortEntry]]:
        """Iterate over the ports that are believed to lead along the path."""
        # A copy, as planning reads the table in another thread.
        return ((port, entry) for port, entry in self.ports.copy().items() if entry.believed is self)

    def update_has_enough(self, flow_ports: Set[int]) -> None:
        """Recompute ``has_enough`` after a change of the path's ports or of those that flows use."""
        self.has_enough = len(self.ports.keys() - flow_ports) >= PORTS_PER_PATH

    def has_enough_without(self, port: int, flow_ports: Set[int]) -> bool:
        """Return whether enough other spare ports are believed to lead along the path."""
        return sum(other != port and other not in flow_ports for other, _ in self.leading()) >= PORTS_PER_PATH


class PathTable:
    """The candidate paths of one pair of NICs, in the order of the fabric's ECMP groups.

    A port is fresh for ``stale_after_s`` after a probe from it took the path that it is believed to lead along. A path
    is fresh while one of its ports is, and the table is complete while every path that crosses no dead link is fresh.
    """

    def __init__(self, candidate_paths: Iterable[Path], stale_after_s: float) -> None:
        self.is_complete = False
        self.routing = 0
        """Counts how often the fabric was rerouted."""
        self._stale_after_s = stale_after_s
        self._paths = {path: PathEntry(path) for path in candidate_paths}
        self._ports: dict[int, PortEntry] = {}
        self._flow_ports: Set[int] = frozenset()
        self._dead_links: Set[int] = frozenset()
        self._has_changed = True
        self._next_check_s = 0.0

    @property
    def paths(self) -> Mapping[Path, PathEntry]:
        """The entries of all candidate paths."""
        return self._paths

    @property
    def flow_ports(self) -> Set[int]:
        """The ports of flows."""
        return self._flow_ports

    @property
    def links(self) -> frozenset[int]:
        """Links on any candidate path, without the first one, which no switch sends on."""
        return frozenset(link for path in self._paths for link in path[1:])

    def accepts(self, port: int) -> bool:
        """Return whether hosts may probe from a port: one that a flow has or could be assigned."""
        return FIRST_SOURCE_PORT <= port <= LAST_SOURCE_PORT or port in self._flow_ports

    def record(self, port: int, port_sequence: int, path: Path, now_s: float) -> Outcome:
        """Record that a probe from a port took a path; ``port_sequence`` counts the probes of the port."""
        path_entry = self._paths[path]
        entry = self._ports.get(port)
        if entry is None:
            if path_entry.has_enough and port not in self._flow_ports:
                return IGNORED
            entry = self._ports[port] = PortEntry(path_entry, self.routing)
            self._assign(port, entry, None, path_entry)
        arrival = entry.window.note(port_sequence)
        if arrival is not _NEW and (arrival is _JUMP or arrival is _TOO_OLD):
            # After an outage or a wrong number, count anew.
            entry.window = SequenceWindow()
        outcome = EXPECTED
        if entry.believed is not path_entry or entry.reported is not path_entry:
            outcome = self._record_change(port, entry, path_entry, now_s)
            if outcome is ELSEWHERE or outcome is UNCONFIRMED:
                return outcome
        path_entry.seen_s = entry.seen_s = now_s
        entry.routing = self.routing
        if not self.is_complete:
            self._next_check_s = now_s
        return outcome

    def keep_ports(self, ports: Set[int]) -> Set[int]:
        """Keep the ports of flows, whichever path they lead along; return the ports that are forgotten.

        A port that no flow has any longer is forgotten, because a rule may have led its packets.
        """
        if ports == self._flow_ports:
            return frozenset()
        forgotten = self._flow_ports - ports
        for port in forgotten:
            self._forget(port)
        self._flow_ports, self._next_check_s, self._has_changed = ports, 0.0, True
        for path_entry in self._paths.values():
            path_entry.update_has_enough(ports)
        return forgotten

    def reroute(self, dead_links: Set[int]) -> Set[int]:
        """Adapt to a fabric that routes around these links; return the ports that are forgotten.

        From now on a port may lead elsewhere without any probe being lost. Paths over links that are back must be found
        again.
        """
        restored, self._dead_links = self._dead_links - dead_links, dead_links
        self.routing += 1
        forgotten = set[int]()
        for path_entry in self._paths.values():
            path_entry.is_dead = not dead_links.isdisjoint(path_entry.path)
            if not restored.isdisjoint(path_entry.path):
                path_entry.seen_s = None
                for port, _ in path_entry.leading():
                    self._forget(port)
                    forgotten.add(port)
        self._next_check_s, self._has_changed = 0.0, True
        return forgotten

    def update_completeness(self, now_s: float) -> bool:
        """Recompute ``is_complete``; return whether it has changed."""
        if now_s < self._next_check_s:
            return False
        was_complete, fresh_until_s = self.is_complete, self._fresh_until_s()
        self.is_complete = fresh_until_s > now_s
        # Until then only a probe can change the result, and ``record`` moves the next check forward.
        self._next_check_s = fresh_until_s if self.is_complete else now_s + self._stale_after_s
        has_changed = self.is_complete != was_complete
        self._has_changed |= has_changed
        return has_changed

    def take_changed(self) -> bool:
        """Return whether ``kept_ports`` or ``wants_ports`` may have changed since the last call."""
        has_changed, self._has_changed = self._has_changed, False
        return has_changed

    @property
    def wants_ports(self) -> bool:
        """Whether hosts should try further ports: a path that works is unknown or has too few spare ports."""
        return not self.is_complete or not all(entry.has_enough or entry.is_dead for entry in self._paths.values())

    def kept_ports(self) -> tuple[int, ...]:
        """Return the ports that hosts should keep probing."""
        return tuple(sorted(self._flow_ports | self._ports.keys()))

    def believed(self, port: int) -> PathEntry | None:
        """Return the path that a port is believed to lead along, however long ago it was seen."""
        entry = self._ports.get(port)
        return None if entry is None else entry.believed

    def path_of(self, port: int, now_s: float) -> Path | None:
        """Return the path that a port leads along, None if that is not known or stale."""
        entry = self._ports.get(port)
        if entry is None or entry.believed is None or not self.is_fresh(entry, now_s):
            return None
        return entry.believed.path

    def ports_along(self, path: Path, now_s: float) -> list[int]:
        """Return the fresh ports that lead along a path, lowest first."""
        path_entry = self._paths.get(path)
        if path_entry is None:
            return []
        return sorted(port for port, entry in path_entry.leading() if self.is_fresh(entry, now_s))

    def candidates(self, now_s: float, black_holes: Set[Path] = frozenset()) -> tuple[Candidate, ...]:
        """Return all candidate paths, the fresh ones first, otherwise in the order of the ECMP groups."""
        found = [self._candidate(path_entry, now_s, black_holes) for path_entry in self._paths.values()]
        order = list(Freshness)
        return tuple(sorted(found, key=lambda candidate: order.index(candidate.freshness)))

    def is_fresh(self, entry: PortEntry, now_s: float) -> bool:
        """Return whether a port was seen to lead along its path recently."""
        return now_s < entry.seen_s + self._stale_after_s

    def _candidate(self, path_entry: PathEntry, now_s: float, black_holes: Set[Path]) -> Candidate:
        leading, seen_s = dict(path_entry.leading()), path_entry.seen_s
        ports = tuple(sorted(port for port, entry in leading.items() if self.is_fresh(entry, now_s)))
        if path_entry.path in black_holes:
            freshness = Freshness.BLACK_HOLE
        elif ports:
            freshness = Freshness.FRESH
        else:
            freshness = Freshness.UNSEEN if seen_s is None else Freshness.STALE
        losses = [entry.window.recent_loss for entry in leading.values()]
        loss = sum(losses) / len(losses) if losses else 0.0
        return Candidate(path_entry.path, freshness, ports, None if seen_s is None else now_s - seen_s, loss)

    def _record_change(self, port: int, entry: PortEntry, path_entry: PathEntry, now_s: float) -> Outcome:
        """Record that a probe took another path than the believed one or than the probe before."""
        if entry.reported is not path_entry:
            if entry.believed is None:
                self._assign(port, entry, entry.reported, path_entry)
            entry.reported, entry.agreeing = path_entry, 0
        entry.agreeing += 1
        if entry.believed is path_entry:
            return EXPECTED
        if entry.agreeing < REPORTS_TO_CONFIRM:
            is_elsewhere = entry.believed is not None and entry.routing == self.routing
            return ELSEWHERE if is_elsewhere else UNCONFIRMED
        before, entry.believed, entry.window = entry.believed, path_entry, SequenceWindow()
        if before is not None:
            self._assign(port, entry, before, path_entry)
        self._next_check_s = now_s
        if port in self._flow_ports:
            return MOVED
        if path_entry.has_enough_without(port, self._flow_ports):
            self._forget(port)
            return FORGOTTEN
        return EXPECTED

    def _assign(self, port: int, entry: PortEntry, before: PathEntry | None, path_entry: PathEntry) -> None:
        """List a port under this path, and no longer under the one before."""
        if before is not None:
            del before.ports[port]
            before.update_has_enough(self._flow_ports)
        path_entry.ports[port] = entry
        path_entry.update_has_enough(self._flow_ports)
        self._has_changed = True

    def _forget(self, port: int) -> None:
        entry = self._ports.pop(port, None)
        if entry is not None:
            path_entry = entry.believed or entry.reported
            del path_entry.ports[port]
            path_entry.update_has_enough(self._flow_ports)
            self._has_changed = True

    def _fresh_until_s(self) -> float:
        """Return until when every path without dead links stays fresh if no further probe arrives."""
        oldest_s = math.inf
        for path_entry in self._paths.values():
            if path_entry.is_dead:
                continue
            times_s = [entry.seen_s for _, entry in path_entry.leading()]
            if not times_s:
                return -math.inf
            oldest_s = min(oldest_s, max(times_s))
        return oldest_s + self._stale_after_s
