"""Prober: which probe a host sends next, and when. A state machine without clock or I/O."""

import heapq
import math
from collections import deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from ipaddress import IPv4Address
from random import Random

from hostlib.telemetry.probes import Mark, Probe, wire_bytes
from hostlib.telemetry.receiver import IDLE_NS
from hostlib.types import FiveTuple
from hostlib.wire.int_md import UDP_PROTOCOL

FIRST_SOURCE_PORT = 49152
LAST_SOURCE_PORT = 65535
"""The range of ports to explore: those that the controller assigns to flows."""

CONFIRMATIONS = 2
"""Probes sent at once for a port that becomes a kept one; with the probe that found it there are three."""

_HOPS = 5
"""Switches on a long path; a probe's size is counted as if this many had answered."""

_SHORTEST = 0.5
"""Shortest round, as a share of the longest."""
_SPAN = 10.0
"""After so many rounds without probes, the order of the rounds is forgotten."""

_NS_PER_S = 1_000_000_000

_REMEMBERED_S = 2 * IDLE_NS / _NS_PER_S


@dataclass(frozen=True, slots=True, order=True)
class Pair:
    """Two NICs, and the header fields common to all flows between them."""

    source_address: IPv4Address
    destination_address: IPv4Address
    protocol: int = UDP_PROTOCOL
    destination_port: int = 4791


@dataclass(frozen=True, slots=True)
class Target:
    """A pair to probe for: the ports whose paths to keep known, and whether to explore others."""

    pair: Pair
    source_ports: tuple[int, ...] = ()
    is_exploring: bool = True


@dataclass(frozen=True, slots=True)
class Pace:
    """Limits of probing, as shares of a NIC's rate, and its frequency.

    Every kept port is probed once per ``refresh_s``, or later if ``steady_share`` leaves no room; exploration may use
    half of that share. The first ``quick_probes`` that explore a pair, and the probes that confirm a port, may use
    ``start_share`` in addition. A late prober catches up at most ``burst_s``.
    """

    steady_share: float = 4e-5
    start_share: float = 3e-4
    quick_probes: int = 1024
    refresh_s: float = 1.0
    burst_s: float = 0.01

    def __post_init__(self) -> None:
        if not 0 < self.steady_share <= self.start_share <= 1:
            raise ValueError(
                "steady_share and start_share must be above 0, in this order, and at most 1,"
                f" not {self.steady_share} and {self.start_share}"
            )
        if not (self.quick_probes >= 0 and self.refresh_s > 0 and self.burst_s > 0):
            raise ValueError(f"quick_probes must not be negative, refresh_s and burst_s be positive, in {self}")


class Prober:
    """The probes of a host, NIC by NIC; ``rates_bps`` has the NICs' rates by address.

    ``session`` tells our probes from those of an earlier prober. ``level`` (0 to 7) selects the queues to sample.
    """

    def __init__(
        self, rates_bps: Mapping[IPv4Address, float], session: int, pace: Pace | None = None, level: int = 0
    ) -> None:
        pace = pace or Pace()
        self._nics = {
            address: _NicProber(rate_bps, pace, session, level, Random(f"{address} {session}"))
            for address, rate_bps in rates_bps.items()
        }

    def set_targets(self, targets: Iterable[Target], now_s: float) -> None:
        """Probe for these pairs only. Pairs that start at other hosts are ignored."""
        by_nic: dict[IPv4Address, list[Target]] = {address: [] for address in self._nics}
        for target in targets:
            if target.pair.source_address in by_nic:
                by_nic[target.pair.source_address].append(target)
        for address, own in by_nic.items():
            self._nics[address].set_targets(own, now_s)

    def take(self, now_s: float) -> list[Probe]:
        """Return the probes to send now."""
        return [probe for nic in self._nics.values() for probe in nic.take(now_s)]

    @property
    def next_s(self) -> float | None:
        """When to send next; None if there is nothing to send."""
        times = (nic.next_s for nic in self._nics.values())
        return min((time_s for time_s in times if time_s is not None), default=None)


class _PairProber:
    """Sequence numbers of a pair, and the port to explore next."""

    def __init__(self, pair: Pair, sequence: int) -> None:
        self.is_exploring = False
        self.quick_left = 0
        self.sequence = sequence
        """Number of the pair's next probe."""
        self._pair = pair
        self._port_sequences: dict[int, int] = {}
        """Next number of each kept port."""
        self._next_port = FIRST_SOURCE_PORT

    def keep(self, ports: Sequence[int]) -> list[int]:
        """Keep these ports known from now on; return those that are new."""
        known = self._port_sequences
        # The probe that found the port had number 0.
        self._port_sequences = {port: known.get(port, 1) for port in ports}
        return [port for port in self._port_sequences if port not in known]

    def keeps(self, port: int) -> bool:
        """Tell whether a port is kept."""
        return port in self._port_sequences

    def tried_port(self) -> int:
        """Return the next port to explore, round robin."""
        while True:
            port = self._next_port
            self._next_port = FIRST_SOURCE_PORT if port == LAST_SOURCE_PORT else port + 1
            if not self.keeps(port):
                return port

    def probe(self, port: int, session: int, level: int, now_s: float) -> Probe:
        """Return the next probe from a port."""
        port_sequence = self._port_sequences.get(port, 0)
        if port_sequence:
            self._port_sequences[port] = port_sequence + 1
        mark = Mark(session, self.sequence, port_sequence, round(now_s * _NS_PER_S))
        self.sequence += 1
        ends = self._pair.source_address, self._pair.destination_address
        return Probe(FiveTuple(*ends, self._pair.protocol, port, self._pair.destination_port), level, mark)


class _Pacer:
    """Paces probes: one every ``interval_s``."""

    def __init__(self, interval_s: float, burst_s: float) -> None:
        self.free_s = 0.0
        self._interval_s = interval_s
        self._burst_s = burst_s

    def begin(self, now_s: float) -> None:
        """Catch up at most a burst."""
        self.free_s = max(self.free_s, now_s - self._burst_s)

    def spend(self) -> None:
        """Count one probe."""
        self.free_s += self._interval_s


class _Rounds:
    """Rounds in which every port is probed once, in the same order, each at most ``longest_s`` long.

    Round lengths are random. Periodic probes of a periodic job would always sample the same moment of it.
    """

    def __init__(self, longest_s: float, random: Random) -> None:
        self._longest_s = longest_s
        self._random = random
        self._begins_s = -math.inf
        self._length_s = self._next_length_s = 0.0

    def after(self, now_s: float) -> float:
        """Return this moment of the next round. Times must not decrease from call to call."""
        if now_s - self._begins_s > _SPAN * self._longest_s:  # nothing was probed for long
            self._begins_s, self._length_s, self._next_length_s = now_s, self._draw(), self._draw()
        while now_s >= self._begins_s + self._length_s:
            self._begins_s += self._length_s
            self._length_s, self._next_length_s = self._next_length_s, self._draw()
        share = (now_s - self._begins_s) / self._length_s
        return self._begins_s + self._length_s + share * self._next_length_s

    def _draw(self) -> float:
        return self._random.uniform(_SHORTEST * self._longest_s, self._longest_s)


class _NicProber:
    """The pairs that start at one NIC, and the time from which its shares let it send again."""

    def __init__(self, rate_bps: float, pace: Pace, session: int, level: int, random: Random) -> None:
        if not rate_bps > 0:
            raise ValueError(f"a NIC's rate must be positive, not {rate_bps}")
        probe_s = 8 * wire_bytes(_HOPS) / rate_bps
        self._quick = _Pacer(probe_s / pace.start_share, pace.burst_s)
        self._steady = _Pacer(probe_s / pace.steady_share, pace.burst_s)
        self._pace = pace
        self._rounds = _Rounds(pace.refresh_s, random)
        self._session = session
        self._level = level
        self._pairs: dict[Pair, _PairProber] = {}
        self._left: dict[Pair, tuple[int, float]] = {}
        """Former pairs, as long as receivers may remember their numbers: the next number, and when they were left."""
        self._confirming: deque[tuple[Pair, int]] = deque()
        self._refreshes: list[tuple[float, int, Pair]] = []
        """Heap of the times at which to probe ports again; may contain ports no longer kept."""
        self._due_s: dict[tuple[Pair, int], float] = {}
        """The time at which to probe each kept port again."""
        self._exploring_quickly: deque[Pair] = deque()
        self._exploring: deque[Pair] = deque()
        self._is_turn_of_exploring = True

    def set_targets(self, targets: Iterable[Target], now_s: float) -> None:
        known, self._pairs = self._pairs, {}
        self._left = {pair: left for pair, left in self._left.items() if now_s < left[1] + _REMEMBERED_S}
        due_s, self._due_s = self._due_s, {}
        self._exploring_quickly.clear()
        self._exploring.clear()
        for target in targets:
            key = target.pair
            pair = self._pairs[key] = known.get(key) or _PairProber(key, self._left.pop(key, (0, now_s))[0])
            if target.is_exploring:
                if not pair.is_exploring:
                    pair.quick_left = self._pace.quick_probes
                (self._exploring_quickly if pair.quick_left else self._exploring).append(key)
            pair.is_exploring = target.is_exploring
            for port in pair.keep(target.source_ports):
                self._confirming.extend([(key, port)] * CONFIRMATIONS)
                self._refresh_at(self._rounds.after(now_s), key, port)
            self._due_s |= {(key, port): due_s[key, port] for port in target.source_ports if (key, port) in due_s}
        self._left |= {key: (known[key].sequence, now_s) for key in known.keys() - self._pairs.keys()}

    @property
    def next_s(self) -> float | None:
        times = []
        if self._confirming or self._exploring_quickly:
            times.append(self._quick.free_s)
        if self._exploring:
            times.append(self._steady.free_s)
        if self._refreshes:
            times.append(max(self._steady.free_s, self._refreshes[0][0]))
        return min(times, default=None)

    def take(self, now_s: float) -> Iterator[Probe]:
        for pacer, choose in ((self._quick, self._choose_quick), (self._steady, self._choose_steady)):
            pacer.begin(now_s)
            while pacer.free_s <= now_s and (chosen := choose(now_s)) is not None:
                pacer.spend()
                key, port = chosen
                yield self._pairs[key].probe(port, self._session, self._level, now_s)

    def _choose_quick(self, _: float) -> tuple[Pair, int] | None:
        """Choose a probe at the starting pace; None if there is none."""
        while self._confirming:
            key, port = self._confirming.popleft()
            if (key, port) in self._due_s:
                return key, port
        if not self._exploring_quickly:
            return None
        key = self._exploring_quickly.popleft()
        pair = self._pairs[key]
        pair.quick_left -= 1
        (self._exploring_quickly if pair.quick_left else self._exploring).append(key)
        return key, pair.tried_port()

    def _choose_steady(self, now_s: float) -> tuple[Pair, int] | None:
        """Choose a probe at the steady pace, alternating refreshes and exploration; None if there is none."""
        self._is_turn_of_exploring = not self._is_turn_of_exploring
        if self._is_turn_of_exploring:
            return self._next_try() or self._next_refresh(now_s)
        return self._next_refresh(now_s) or self._next_try()

    def _next_refresh(self, now_s: float) -> tuple[Pair, int] | None:
        while self._refreshes and self._refreshes[0][0] <= now_s:
            due_s, port, key = heapq.heappop(self._refreshes)
            if self._due_s.get((key, port)) == due_s:
                self._refresh_at(self._rounds.after(now_s), key, port)
                return key, port
        return None

    def _next_try(self) -> tuple[Pair, int] | None:
        if not self._exploring:
            return None
        key = self._exploring[0]
        self._exploring.rotate(-1)
        return key, self._pairs[key].tried_port()

    def _refresh_at(self, due_s: float, key: Pair, port: int) -> None:
        self._due_s[key, port] = due_s
        heapq.heappush(self._refreshes, (due_s, port, key))
