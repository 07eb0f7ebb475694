"""A pair's candidate paths the plain way: every question is answered by a look at all ports and all paths."""

import math
from collections import Counter
from collections.abc import Iterable, Set

from controller.telemetry.path_table import PORTS_PER_PATH, REPORTS_TO_CONFIRM
from controller.telemetry.probe_loss import PortLoss
from hostlib.telemetry.prober import CONFIRMATIONS
from hostlib.wire.sequence_window import Arrival, SequenceWindow
from topologies.fabric import Path

CandidateRow = tuple[Path, bool, tuple[int, ...], float | None, float]
"""Path, whether it is fresh, ports, when it was seen, loss."""


class PlainPort:
    def __init__(self, told: Path, routing: int) -> None:
        self.believed: Path | None = None
        self.told = told
        self.agreeing = 0
        self.seen_s = -math.inf
        self.window = SequenceWindow()
        self.routing = routing


class PlainTurns:
    """By port, the probe by which it was heard of or missed, and the last that came in a round; what is missing."""

    def __init__(self) -> None:
        self.turns: dict[int, int] = {}
        self.heard: dict[int, int] = {}
        self.newest = -1
        self.missed: dict[int, PortLoss] = {}

    def take(self, port: int, port_sequence: int, number: int) -> list[int]:
        is_late, self.newest = number < self.newest, max(number, self.newest)
        passed_over: list[int] = []
        if port_sequence > CONFIRMATIONS:
            before = self.heard.get(port, -1)
            if not is_late:
                passed_over = [other for other, turn in self.turns.items() if turn < before]
            self.heard[port] = max(number, before)
        self.turns |= dict.fromkeys(passed_over, number - 1)
        self.turns[port] = max(number, self.turns.get(port, -1))
        return passed_over

    def forget(self, port: int) -> None:
        self.turns.pop(port, None)
        self.heard.pop(port, None)
        self.missed.pop(port, None)


class PlainCandidates:
    def __init__(self, allowed: Iterable[Path], stale_after_s: float) -> None:
        self.is_complete = False
        self.stale_after_s = stale_after_s
        self.seen_s: dict[Path, float | None] = dict.fromkeys(allowed)
        self.ports: dict[int, PlainPort] = {}
        self.flow_ports: Set[int] = frozenset()
        self.turns = PlainTurns()
        self.heard_s = self.reset_s = -math.inf
        self.routing = 0
        self.dead: Set[int] = frozenset()

    def keep_ports(self, ports: Set[int]) -> None:
        for port in self.flow_ports - ports:
            self.forget(port)
        self.flow_ports = ports

    def record_probe(self, port: int, port_sequence: int, number: int, path: Path, now_s: float) -> bool:
        if port not in self.ports:
            if port not in self.flow_ports and path in self.well_known_paths():
                return False
            self.ports[port] = PlainPort(path, self.routing)
        known = self.ports[port]
        if known.window.note(port_sequence) in (Arrival.JUMP, Arrival.TOO_OLD):
            known.window = SequenceWindow()
        self.heard_s = now_s
        for passed_over in self.turns.take(port, port_sequence, number):
            self.miss(passed_over, now_s)
        if known.told != path:
            known.told, known.agreeing = path, 0
        known.agreeing += 1
        has_moved = False
        if known.agreeing >= REPORTS_TO_CONFIRM and known.believed != path:
            known.believed, known.window = path, SequenceWindow()
            has_moved = port in self.flow_ports
            others = [other for number, other in self.ports.items() if number != port and number not in self.flow_ports]
            if port not in self.flow_ports and sum(other.believed == path for other in others) >= PORTS_PER_PATH:
                self.forget(port)
        if known.believed != path:
            if known.routing == self.routing:
                self.miss(port, now_s)
        else:
            self.seen_s[path] = known.seen_s = now_s
            known.routing = self.routing
            self.turns.missed.pop(port, None)
        return has_moved

    def update_completeness(self, now_s: float) -> bool:
        before = self.is_complete
        fresh = {known.believed for known in self.ports.values() if now_s < known.seen_s + self.stale_after_s}
        self.is_complete = fresh >= self.alive()
        return self.is_complete != before

    def reroute(self, dead: Set[int]) -> None:
        back, self.dead = self.dead - dead, dead
        self.routing += 1
        for path in self.seen_s:
            if back & set(path):
                self.seen_s[path] = None
                for port in [port for port, known in self.ports.items() if known.believed == path]:
                    self.forget(port)

    def reset_loss(self, now_s: float) -> None:
        self.reset_s = now_s
        self.turns.missed.clear()

    def missing_probes(self, link: int, heard_s: float, now_s: float) -> int | None:
        total, is_second_round = 0, False
        if self.heard_s + self.stale_after_s <= now_s:
            return total
        for path, seen_s in self.seen_s.items():
            if link not in path[1:] or seen_s is None or self.dead & set(path):
                continue
            if self.is_silent(path):
                if self.heard_s - heard_s < self.stale_after_s:
                    return None
                total, is_second_round = total + REPORTS_TO_CONFIRM, True
                continue
            for port, known in self.ports.items():
                if known.believed == path:
                    missed = self.turns.missed.get(port, PortLoss())
                    if known.routing != self.routing or missed.last_s <= heard_s:
                        return None
                    total += missed.probes
                    is_second_round |= missed.before_s > heard_s
            if not any(known.believed == path for known in self.ports.values()):
                return None
        return total if is_second_round or not total else None

    def sees_working(self, link: int, now_s: float) -> bool:
        return any(
            known.believed is not None
            and link in known.believed
            and not self.dead & set(known.believed)
            and known.routing == self.routing
            and self.reset_s < known.seen_s
            and now_s < known.seen_s + self.stale_after_s
            and port not in self.turns.missed
            for port, known in self.ports.items()
        )

    def wants_ports(self) -> bool:
        return not self.is_complete or not self.well_known_paths() >= self.alive()

    def alive(self) -> set[Path]:
        return {path for path in self.seen_s if not self.dead & set(path)}

    def rows(self, now_s: float) -> list[CandidateRow]:
        rows: list[CandidateRow] = []
        for path, seen_s in self.seen_s.items():
            leading = {port: known for port, known in self.ports.items() if known.believed == path}
            fresh = sorted(port for port, known in leading.items() if now_s < known.seen_s + self.stale_after_s)
            losses = [known.window.recent_loss for known in leading.values()]
            loss = sum(losses) / len(losses) if losses else 0.0
            rows.append((path, bool(fresh), tuple(fresh), None if seen_s is None else now_s - seen_s, loss))
        return rows

    def miss(self, port: int, now_s: float) -> None:
        if self.ports[port].believed is not None:
            before = self.turns.missed.get(port, PortLoss())
            self.turns.missed[port] = PortLoss(before.probes + 1, now_s, before.last_s)

    def forget(self, port: int) -> None:
        self.ports.pop(port, None)
        self.turns.forget(port)

    def is_silent(self, path: Path) -> bool:
        seen_s = self.seen_s[path]
        return seen_s is not None and self.heard_s >= max(seen_s, self.reset_s) + self.stale_after_s

    def well_known_paths(self) -> set[Path]:
        counts = Counter(
            known.believed or known.told for port, known in self.ports.items() if port not in self.flow_ports
        )
        return {path for path, count in counts.items() if count >= PORTS_PER_PATH}
