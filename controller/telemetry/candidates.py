"""Candidate paths between two NICs as probes have found them, and the source ports that lead to each."""

import math
from collections.abc import Iterable, Set
from dataclasses import dataclass
from enum import StrEnum

from controller.telemetry.known_paths import KnownPath, KnownPort
from controller.telemetry.misses import Misses
from hostlib.telemetry.prober import CONFIRMATIONS
from hostlib.wire.sequence_window import SequenceWindow
from topologies.addressing import FIRST_SOURCE_PORT, LAST_SOURCE_PORT
from topologies.fabric import Path

AGREEING = CONFIRMATIONS + 1
"""Reports in a row that have to say the same of a port before its path is believed, at first and whenever it moves."""


class Freshness(StrEnum):
    """Whether a path is known to be there."""

    FRESH = "fresh"
    STALE = "stale"
    UNSEEN = "unseen"
    BLACK_HOLE = "black hole"
    """Nothing of what the pair sends by it arrives, though others come by its links."""


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


class PairCandidates:
    """The candidate paths of one pair of NICs; ``allowed`` are all that ECMP can give it, in the order of its groups.

    A port is fresh for ``stale_after_s`` after a probe from it came by the path that it is believed to lead to, a path
    while one of its ports is. The pair is complete while all paths are that cross no dead link.
    """

    def __init__(self, allowed: Iterable[Path], stale_after_s: float) -> None:
        self.is_complete = False
        self.moves = 0
        """How often the path of a flow's port was found, or found to be another."""
        self.changes = 0
        """Another one whenever ports that are to be kept known, or whether others are to be tried, may have changed."""
        self.lost: frozenset[Path] = frozenset()
        """Paths by which nothing arrives of what this pair sends."""
        self._stale_after_s = stale_after_s
        self._paths = {path: KnownPath(path) for path in allowed}
        self._ports: dict[int, KnownPort] = {}
        self._pinned: Set[int] = frozenset()
        self._look_again_s = 0.0
        self._none_silent_until_s = math.inf
        """No path is, unless the pair is heard of then or later."""
        self._misses = Misses()
        self._lost_s: dict[Path, float] = {}
        """Since when paths are lost."""
        self._heard_s = self._forgiven_s = -math.inf
        self._routing = 0
        self._dead: Set[int] = frozenset()

    @property
    def links(self) -> frozenset[int]:
        """Links that a switch sends on and that a path crosses."""
        return frozenset(link for path in self._paths for link in path[1:])

    def allows(self, path: Path) -> bool:
        """Whether a path is one that ECMP can give."""
        return path in self._paths

    def is_probed(self, port: int) -> bool:
        """Whether hosts may probe from a port: one that flows have, or that they may be given."""
        return FIRST_SOURCE_PORT <= port <= LAST_SOURCE_PORT or port in self._pinned

    def pin(self, ports: Set[int]) -> None:
        """Keep these ports known, whichever path they lead to: those that flows have.

        Those that flows have no longer are forgotten: a rule may have led them.
        """
        if ports == self._pinned:
            return
        for port in self._pinned - ports:
            self._forget(port)
        self._pinned, self._look_again_s = ports, 0.0
        for way in self._paths.values():
            way.count(self._pinned)
        self.changes += 1

    def note(self, port: int, port_sequence: int, number: int, path: Path, now_s: float) -> None:
        """A probe from a port has come by a path.

        ``number`` counts the pair's probes, ``port_sequence`` those of the port. The path is believed once as many
        reports in a row have told it as have to agree.
        """
        way = self._paths[path]
        known = self._ports.get(port)
        if known is None:
            if way.has_enough and port not in self._pinned:
                return
            known = self._ports[port] = KnownPort(way, self._routing)
            self._lead(port, known, None, way)
        known.window.note(port_sequence)
        self._heard_s = now_s
        for passed_over in self._misses.take_turn(port, port_sequence, number):
            self._miss(passed_over, now_s)
        if known.told is not way:
            if known.believed is None:
                self._lead(port, known, known.told, way)
            known.told, known.agreeing = way, 0
        known.agreeing += 1
        if known.agreeing >= AGREEING and known.believed is not way:
            before, known.believed, known.window = known.believed, way, SequenceWindow()
            if before is not None:
                self._lead(port, known, before, way)
            self._look_again_s = now_s
            self.moves += port in self._pinned
            if port not in self._pinned and way.has_enough_without(port, self._pinned):
                self._forget(port)
        if known.believed is not way:
            if known.routing == self._routing:
                self._miss(port, now_s)
        else:
            way.seen_s = known.seen_s = now_s
            if now_s + self._stale_after_s < self._none_silent_until_s:
                self._none_silent_until_s = now_s + self._stale_after_s
            known.routing = self._routing
            self._misses.come(port)
            if not self.is_complete:
                self._look_again_s = now_s

    def age(self, now_s: float) -> bool:
        """Find out whether the pair is complete at this time; whether that has changed."""
        if now_s < self._look_again_s:
            return False
        before, fresh_until_s = self.is_complete, self._fresh_until_s()
        self.is_complete = fresh_until_s > now_s
        # Until then nothing can change that ``note`` would not have told.
        self._look_again_s = fresh_until_s if self.is_complete else now_s + self._stale_after_s
        self.changes += self.is_complete != before
        return self.is_complete != before

    def rerouted(self, dead: Set[int]) -> None:
        """The fabric routes otherwise, and not over dead links: ports may lead elsewhere without any being lost.

        Paths over links that are back are to be found anew.
        """
        back, self._dead = self._dead - dead, dead
        self._routing += 1
        self._none_silent_until_s = -math.inf
        for way in self._paths.values():
            way.is_dead = not dead.isdisjoint(way.path)
            if not back.isdisjoint(way.path):
                way.seen_s = None
                for port, _ in way.leading():
                    self._forget(port)
        self._look_again_s = 0.0
        self.changes += 1

    def forgive(self, now_s: float) -> None:
        """Reports have been lost on their way: what has not come until now is not missing."""
        self._forgiven_s = now_s
        self._misses.forgive()

    def doubted_links(self, now_s: float) -> Set[int]:
        """Links by which probes of this pair are missing, and none come."""
        ways = {self._ports[port].believed for port in self._misses.ports}
        if self._heard_s >= self._none_silent_until_s:
            alive = [way for way in self._paths.values() if not way.is_dead]
            ways.update(way for way in alive if self._is_silent(way))
            self._none_silent_until_s = min((self._silent_s(way) for way in alive), default=math.inf)
        links = {link for way in ways if way is not None and not way.is_dead for link in way.path[1:]}
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
        for way in self._paths.values():
            if way.is_dead or way.seen_s is None or link not in way.path:
                continue
            if self._is_silent(way):
                if self._heard_s - heard_s < self._stale_after_s:
                    return None
                total, is_second_round = total + AGREEING, True
                continue
            ports = {port: known.routing for port, known in way.leading()}
            missed = [self._misses.of(port) for port in ports]
            if set(ports.values()) != {self._routing} or any(one.last_s <= heard_s for one in missed):
                return None
            total += sum(one.probes for one in missed)
            is_second_round |= any(one.before_s > heard_s for one in missed)
        # By then whatever port may lead over it instead has had its turn.
        return total if is_second_round or not total else None

    def hears(self, link: int, now_s: float) -> bool:
        """Whether a port leads over a link that the fabric routes over, and its probes come."""
        return any(
            known.routing == self._routing and self._is_fresh(known, now_s) and known.seen_s > self._forgiven_s
            for way in self._paths.values()
            if link in way.path and not way.is_dead
            for port, known in way.leading()
            if port not in self._misses.ports
        )

    def misses(self, link: int, silent: Set[int]) -> bool:
        """Whether this pair's paths over a link are all lost, but for those that silent links explain."""
        crossing = [way for way in self._paths.values() if link in way.path and way.seen_s is not None]
        unexplained = [way for way in crossing if self._is_unexplained(way, silent)]
        return bool(self._misses.ports and unexplained) and all(self._is_lost(way, silent) for way in unexplained)

    def look_for_lost(self, silent: Set[int], has_gaps: bool) -> bool:
        """See which paths are lost to this pair, though no link of them is silent; whether that has changed.

        The sender has to have counted probes that nobody reports, which are gaps in its numbers. A path is lost until
        probes come by it, from all ports that have led along it since the fabric was last rerouted.
        """
        if not self._misses.ports and not self._lost_s:
            return False
        for way in {self._ports[port].believed for port in self._misses.ports} if has_gaps else ():
            if way is not None and self._is_lost(way, silent):
                self._lost_s.setdefault(way.path, self._heard_s)
        self._lost_s = {
            path: since_s for path, since_s in self._lost_s.items() if not self._has_come(self._paths[path], since_s)
        }
        before, self.lost = self.lost, frozenset(self._lost_s)
        return self.lost != before

    @property
    def wants_ports(self) -> bool:
        """Whether ports are to be tried: a path that may be there is not known, or has fewer ports than are kept."""
        return not self.is_complete or not all(way.has_enough or way.is_dead for way in self._paths.values())

    def kept_ports(self) -> tuple[int, ...]:
        """Ports that hosts are to keep known."""
        return tuple(sorted(self._pinned | self._ports.keys()))

    def path_of(self, port: int, now_s: float) -> Path | None:
        """The path that a port leads to; None where that is not known, or no longer."""
        known = self._ports.get(port)
        if known is None or known.believed is None or not self._is_fresh(known, now_s):
            return None
        return known.believed.path

    def ports_along(self, path: Path, now_s: float) -> list[int]:
        """The fresh ports that lead along a path, lowest first."""
        way = self._paths.get(path)
        return [] if way is None else sorted(port for port, known in way.leading() if self._is_fresh(known, now_s))

    def candidates(self, now_s: float) -> tuple[Candidate, ...]:
        """All paths that are allowed: those that are known to be there first, then in the order of ECMP's groups."""
        found = [self._candidate(way, now_s) for way in self._paths.values()]
        order = list(Freshness)
        return tuple(sorted(found, key=lambda candidate: order.index(candidate.freshness)))

    def _candidate(self, way: KnownPath, now_s: float) -> Candidate:
        leading, seen_s = dict(way.leading()), way.seen_s
        ports = tuple(sorted(port for port, known in leading.items() if self._is_fresh(known, now_s)))
        losses = [known.window.recent_loss for known in leading.values()]
        return Candidate(
            way.path,
            self._freshness(way, bool(ports)),
            ports,
            None if seen_s is None else now_s - seen_s,
            sum(losses) / len(losses) if losses else 0.0,
        )

    def _freshness(self, way: KnownPath, has_ports: bool) -> Freshness:
        if way.path in self.lost:
            return Freshness.BLACK_HOLE
        if has_ports:
            return Freshness.FRESH
        return Freshness.UNSEEN if way.seen_s is None else Freshness.STALE

    def _miss(self, port: int, now_s: float) -> None:
        if self._ports[port].believed is not None:
            self._misses.miss(port, now_s)

    def _lead(self, port: int, known: KnownPort, before: KnownPath | None, way: KnownPath) -> None:
        """A port leads along this path from now on."""
        if before is not None:
            del before.ports[port]
            before.count(self._pinned)
        self.changes += 1
        way.ports[port] = known
        way.count(self._pinned)

    def _forget(self, port: int) -> None:
        known = self._ports.pop(port, None)
        if known is not None:
            self.changes += 1
            way = known.believed or known.told
            del way.ports[port]
            way.count(self._pinned)
        self._misses.forget(port)

    def _fresh_until_s(self) -> float:
        """Until when all paths are that may be, if nothing else comes."""
        newest_s = math.inf
        for way in self._paths.values():
            if way.is_dead:
                continue
            times_s = [known.seen_s for _, known in way.leading()]
            if not times_s:
                return -math.inf
            newest_s = min(newest_s, max(times_s))
        return newest_s + self._stale_after_s

    def _silent_s(self, way: KnownPath) -> float:
        """From when on a path is silent, if the pair is heard of then: never where nothing ever came by it."""
        return math.inf if way.seen_s is None else max(way.seen_s, self._forgiven_s) + self._stale_after_s

    def _is_silent(self, way: KnownPath) -> bool:
        """Whether the pair has been heard of for so long, but by this path, that it is stale."""
        return self._heard_s >= self._silent_s(way)

    def _is_lost(self, way: KnownPath, silent: Set[int]) -> bool:
        """Whether all ports that lead along a path, as the fabric routes now, miss several probes, for so long.

        Over silent links that says nothing.
        """
        leading = dict(way.leading())
        return (
            self._is_silent(way)
            and self._is_unexplained(way, silent)
            and {known.routing for known in leading.values()} == {self._routing}
            and all(self._misses.of(port).probes >= AGREEING for port in leading)
        )

    def _is_unexplained(self, way: KnownPath, silent: Set[int]) -> bool:
        return not way.is_dead and silent.isdisjoint(way.path)

    def _has_come(self, way: KnownPath, since_s: float) -> bool:
        leading = [known for _, known in way.leading() if known.routing == self._routing]
        return bool(leading) and all(known.seen_s > since_s for known in leading)

    def _is_fresh(self, port: KnownPort, now_s: float) -> bool:
        return now_s < port.seen_s + self._stale_after_s
