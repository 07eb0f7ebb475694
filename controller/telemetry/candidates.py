"""Candidate paths between two NICs as probes have found them, and the source ports that lead to each."""

import math
from collections import Counter
from collections.abc import Iterable, Set
from dataclasses import dataclass
from enum import StrEnum

from controller.telemetry.misses import Misses
from hostlib.telemetry.prober import CONFIRMATIONS
from hostlib.telemetry.sequence_window import SequenceWindow
from topologies.addressing import FIRST_SOURCE_PORT, LAST_SOURCE_PORT
from topologies.fabric import Path

AGREEING = CONFIRMATIONS + 1
"""Reports in a row that have to say the same of a port before its path is believed, at first and whenever it moves."""

PORTS_PER_PATH = 2
"""Ports that are kept known for each path, beside those that flows have: there may be more flows than one."""


class Freshness(StrEnum):
    """Whether a path is known to be there."""

    FRESH = "fresh"
    STALE = "stale"
    UNSEEN = "unseen"


@dataclass(frozen=True, slots=True)
class Candidate:
    """A path that the topology allows, and the fresh ports that lead to it, lowest first.

    ``age_s`` is how long ago a probe came by it, None where none ever has. ``loss`` is the share of the last probes
    (256 a port at most) that have not come.
    """

    path: Path
    freshness: Freshness
    source_ports: tuple[int, ...]
    age_s: float | None
    loss: float


class _Port:
    """What reports say of a source port: the path that is believed, and the one that the last of them told."""

    __slots__ = ("agreeing", "believed", "routing", "seen_s", "told", "window")

    def __init__(self, told: Path, routing: int) -> None:
        self.believed: Path | None = None
        self.told = told
        self.agreeing = 0
        self.seen_s = -math.inf
        """When a probe has last come by the path that is believed."""
        self.window = SequenceWindow()
        self.routing = routing
        """Which routing of the fabric it was that had it lead there."""


class PairCandidates:
    """The candidate paths of one pair of NICs; ``allowed`` are all that ECMP can give it, in the order of its groups.

    A port is fresh for ``stale_after_s`` after a probe from it came by the path that it is believed to lead to, a path
    while one of its ports is. The pair is complete while all paths are.
    """

    def __init__(self, allowed: Iterable[Path], stale_after_s: float) -> None:
        self.is_complete = False
        self.moves = 0
        """How often the path of a flow's port was found, or found to be another."""
        self._stale_after_s = stale_after_s
        self._seen_s: dict[Path, float | None] = dict.fromkeys(allowed)
        self._ports: dict[int, _Port] = {}
        self._pinned: Set[int] = frozenset()
        self._covered: frozenset[Path] | None = None
        self._look_again_s = 0.0
        self._misses = Misses()
        self._heard_s = self._forgiven_s = -math.inf
        self._routing = 0
        self._dead: Set[int] = frozenset()

    @property
    def links(self) -> frozenset[int]:
        """Links that a switch sends on and that a path crosses."""
        return frozenset(link for path in self._seen_s for link in path[1:])

    def allows(self, path: Path) -> bool:
        """Whether a path is one that ECMP can give."""
        return path in self._seen_s

    def is_probed(self, port: int) -> bool:
        """Whether hosts may probe from a port: one that flows have, or that they may be given."""
        return FIRST_SOURCE_PORT <= port <= LAST_SOURCE_PORT or port in self._pinned

    def pin(self, ports: Set[int]) -> bool:
        """Keep these ports known, whichever path they lead to: those that flows have. Whether that is news.

        Those that flows have no longer are forgotten: a rule may have led them.
        """
        if ports == self._pinned:
            return False
        for port in self._pinned - ports:
            self._forget(port)
        self._pinned, self._covered, self._look_again_s = ports, None, 0.0
        return True

    def note(self, port: int, port_sequence: int, path: Path, now_s: float) -> bool:
        """A probe from a port has come by a path; whether that changes which ports are to be kept known.

        The path is believed once as many reports in a row have told it as have to agree.
        """
        known = self._ports.get(port)
        is_news = known is None
        if known is None:
            if port not in self._pinned and path in self._well_known_paths():
                return False
            known = self._ports[port] = _Port(path, self._routing)
            self._covered = None
        known.window.note(port_sequence)
        self._heard_s = now_s
        for passed_over in self._misses.take_turn(port, port_sequence):
            self._miss(passed_over, now_s)
        if known.told != path:
            known.told, known.agreeing, self._covered = path, 0, None
        known.agreeing += 1
        if known.agreeing >= AGREEING and known.believed != path:
            known.believed, known.window, self._covered = path, SequenceWindow(), None
            self._look_again_s, is_news = now_s, True
            self.moves += port in self._pinned
            if self._is_surplus(port):
                self._forget(port)
        if known.believed != path:
            if known.routing == self._routing:
                self._miss(port, now_s)
        else:
            self._seen_s[path] = known.seen_s = now_s
            known.routing = self._routing
            self._misses.come(port)
            if not self.is_complete:
                self._look_again_s = now_s
        return is_news

    def age(self, now_s: float) -> bool:
        """Find out whether the pair is complete at this time; whether that has changed."""
        if now_s < self._look_again_s:
            return False
        before = self.is_complete
        newest_s = dict.fromkeys(self._seen_s, -math.inf)
        for known in self._ports.values():
            if known.believed is not None:
                newest_s[known.believed] = max(newest_s[known.believed], known.seen_s)
        fresh_until_s = min(newest_s.values()) + self._stale_after_s
        self.is_complete = fresh_until_s > now_s
        # Until then nothing can change that ``note`` would not have told.
        self._look_again_s = fresh_until_s if self.is_complete else now_s + self._stale_after_s
        return self.is_complete != before

    def rerouted(self, dead: Set[int]) -> None:
        """The fabric routes otherwise, and not over dead links: ports may lead elsewhere without any being lost.

        Paths over links that are back are to be found anew.
        """
        back, self._dead = self._dead - dead, dead
        self._routing += 1
        for path in [path for path in self._seen_s if not back.isdisjoint(path)]:
            self._seen_s[path] = None
            for port in [port for port, known in self._ports.items() if known.believed == path]:
                self._forget(port)
            self._look_again_s = 0.0

    def forgive(self, now_s: float) -> None:
        """Reports have been lost on their way: what has not come until now is not missing."""
        self._forgiven_s = now_s
        self._misses.forgive()

    def doubted_links(self, now_s: float) -> Set[int]:
        """Links by which probes of this pair are missing, and none come."""
        paths = {self._ports[port].believed for port in self._misses.ports}
        paths.update(path for path in self._seen_s if self._is_silent(path))
        links = {link for path in paths if path is not None for link in path[1:]}
        return {link for link in links if self.missing(link, -math.inf, now_s)}

    def missing(self, link: int, heard_s: float, now_s: float) -> int | None:
        """How many probes of this pair are missing by a link; None where they come, or have had no time to.

        ``heard_s`` is when any probe came by the link last: what was missing before was lost elsewhere, or its port
        leads elsewhere, and hosts' turns have to be over once since then. Nothing is said by a pair that is not heard
        of at all: its probes may have ceased.
        """
        total, is_second_round = 0, False
        if self._heard_s + self._stale_after_s <= now_s:
            return total
        for path, seen_s in self._seen_s.items():
            if link not in path or seen_s is None or not self._dead.isdisjoint(path):
                continue
            if self._is_silent(path):
                if self._heard_s - heard_s < self._stale_after_s:
                    return None
                total, is_second_round = total + AGREEING, True
                continue
            ports = {port: known.routing for port, known in self._ports.items() if known.believed == path}
            missed = [self._misses.of(port) for port in ports]
            if set(ports.values()) != {self._routing} or any(one.last_s <= heard_s for one in missed):
                return None
            total += sum(one.probes for one in missed)
            is_second_round |= any(one.before_s > heard_s for one in missed)
        # By then whatever port may lead over it instead has had its turn.
        return total if is_second_round or not total else None

    def hears(self, link: int, now_s: float) -> bool:
        """Whether a port leads over a link, and its probes come."""
        leading = {port: known for port, known in self._ports.items() if known.believed and link in known.believed}
        return any(
            known.routing == self._routing and self._is_fresh(known, now_s) and known.seen_s > self._forgiven_s
            for port, known in leading.items()
            if port not in self._misses.ports
        )

    @property
    def wants_ports(self) -> bool:
        """Whether ports are to be tried: a path is not known, or has fewer ports than are kept."""
        return not self.is_complete or len(self._well_known_paths()) < len(self._seen_s)

    def kept_ports(self) -> tuple[int, ...]:
        """Ports that hosts are to keep known."""
        return tuple(sorted(self._pinned | self._ports.keys()))

    def path_of(self, port: int, now_s: float) -> Path | None:
        """The path that a port leads to; None where that is not known, or no longer."""
        known = self._ports.get(port)
        return known.believed if known is not None and self._is_fresh(known, now_s) else None

    def candidates(self, now_s: float) -> tuple[Candidate, ...]:
        """All paths that are allowed: those that are known to be there first, then in the order of ECMP's groups."""
        ports: dict[Path, list[int]] = {path: [] for path in self._seen_s}
        for port, known in sorted(self._ports.copy().items()):
            if known.believed is not None and self._is_fresh(known, now_s):
                ports[known.believed].append(port)
        found = [
            Candidate(
                path,
                Freshness.FRESH if ports[path] else Freshness.UNSEEN if seen_s is None else Freshness.STALE,
                tuple(ports[path]),
                None if seen_s is None else now_s - seen_s,
                self._loss(path),
            )
            for path, seen_s in self._seen_s.items()
        ]
        order = list(Freshness)
        return tuple(sorted(found, key=lambda candidate: order.index(candidate.freshness)))

    def _miss(self, port: int, now_s: float) -> None:
        if self._ports[port].believed is not None:
            self._misses.miss(port, now_s)

    def _forget(self, port: int) -> None:
        self._ports.pop(port, None)
        self._misses.forget(port)
        self._covered = None

    def _is_silent(self, path: Path) -> bool:
        """Whether the pair has been heard of for so long, but by this path, that it is stale."""
        seen_s = self._seen_s[path]
        return seen_s is not None and self._heard_s - max(seen_s, self._forgiven_s) >= self._stale_after_s

    def _is_fresh(self, port: _Port, now_s: float) -> bool:
        return now_s < port.seen_s + self._stale_after_s

    def _loss(self, path: Path) -> float:
        ports = self._ports.copy().values()
        losses = [known.window.recent_loss for known in ports if known.believed == path]
        return sum(losses) / len(losses) if losses else 0.0

    def _well_known_paths(self) -> frozenset[Path]:
        """Paths that have as many ports as are kept known, some of which may still have to be believed."""
        if self._covered is None:
            counts = Counter(
                known.believed or known.told for port, known in self._ports.items() if port not in self._pinned
            )
            self._covered = frozenset(path for path, count in counts.items() if count >= PORTS_PER_PATH)
        return self._covered

    def _is_surplus(self, port: int) -> bool:
        """Whether a path has enough ports without this one."""
        believed = self._ports[port].believed
        if port in self._pinned or believed is None:
            return False
        others = (known for other, known in self._ports.items() if other != port and other not in self._pinned)
        return sum(known.believed == believed for known in others) >= PORTS_PER_PATH
