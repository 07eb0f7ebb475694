"""Receiver of probes: parses them, counts what it drops, and queues reports."""

from collections import Counter, deque
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from enum import StrEnum
from ipaddress import IPv4Address

from hostlib.telemetry.parsing import Malformed, MalformedProbeError, ReceivedProbe, parse_probe
from hostlib.wire.sequence_window import Arrival
from hostlib.wire.session_window import SESSION_SILENCE_S, SessionWindow

_NS_PER_S = 1_000_000_000

MAX_WAITING = 16_384
"""Reports kept while no controller takes them; the oldest are dropped first."""

IDLE_NS = 60_000_000_000
"""A pair of NICs without probes for this long is forgotten, with its numbers."""

MAX_STREAMS = 65_536
"""Pairs of NICs between which probes are accepted."""

_Ends = tuple[IPv4Address, IPv4Address]


class DropReason(StrEnum):
    """Why a well-formed probe is not reported."""

    NOT_MINE = "for another host"
    OTHER_SESSION = "of another session than the one in force"
    REPEATED = "its number has come before, or cannot be told from such"
    JUMP = "its number is far ahead of all before"
    INCOMPLETE = "a switch had no room to answer"
    OVERFLOW = "more probes than could be reported"


@dataclass(frozen=True, slots=True)
class ProbeReport:
    """A probe and its time of arrival by the receiver's clock."""

    probe: ReceivedProbe
    received_ns: int


@dataclass(slots=True)
class _Stream:
    """The probes between two NICs, and when the last one came."""

    probes: SessionWindow
    newest_ns: int


_DROPPED = {
    Arrival.DUPLICATE: DropReason.REPEATED,
    Arrival.TOO_OLD: DropReason.REPEATED,
    Arrival.JUMP: DropReason.JUMP,
    Arrival.OTHER_SESSION: DropReason.OTHER_SESSION,
}
"""Other arrivals are reported, also with a clock that has jumped, of which the controller judges."""


class Receiver:
    """Incoming probes of a host with NICs at ``addresses``. Performs no I/O and has no clock."""

    def __init__(self, addresses: Collection[IPv4Address]) -> None:
        self._addresses = frozenset(addresses)
        self._streams: dict[_Ends, _Stream] = {}
        self._waiting: deque[ProbeReport] = deque()
        self._dropped: Counter[Malformed | DropReason] = Counter()

    def receive(self, packet: bytes, now_ns: int) -> None:
        """Take an IPv4 packet that may be a probe."""
        try:
            probe = parse_probe(packet)
        except MalformedProbeError as error:
            self._dropped[error.reason] += 1
            return
        refused = self._refuse(probe, now_ns)
        if refused is not None:
            self._dropped[refused] += 1
            return
        if len(self._waiting) == MAX_WAITING:
            self._waiting.popleft()
            self._dropped[DropReason.OVERFLOW] += 1
        self._waiting.append(ProbeReport(probe, now_ns))

    def take_reports(self, at_most: int) -> tuple[ProbeReport, ...]:
        """Remove and return the oldest reports."""
        return tuple(self._waiting.popleft() for _ in range(min(at_most, len(self._waiting))))

    @property
    def waiting(self) -> int:
        """Number of queued reports."""
        return len(self._waiting)

    @property
    def dropped(self) -> Mapping[Malformed | DropReason, int]:
        """Packets that were not reported, by reason."""
        return self._dropped

    def forget_idle(self, now_ns: int) -> None:
        """Forget pairs that have been silent for a minute."""
        self._streams = {ends: stream for ends, stream in self._streams.items() if now_ns - stream.newest_ns < IDLE_NS}

    def _refuse(self, probe: ReceivedProbe, now_ns: int) -> DropReason | None:
        """Record the probe's numbers; return why to drop it, or None."""
        flow = probe.five_tuple
        if flow.destination_address not in self._addresses:
            return DropReason.NOT_MINE
        ends = flow.source_address, flow.destination_address
        stream = self._streams.get(ends)
        if stream is None and len(self._streams) == MAX_STREAMS:
            return DropReason.OVERFLOW
        if stream is None:
            stream = self._streams[ends] = _Stream(SessionWindow(SESSION_SILENCE_S), now_ns)
        mark = probe.mark
        arrival = stream.probes.note(mark.session, mark.sequence, now_ns - mark.sent_ns, now_ns / _NS_PER_S)
        if arrival in _DROPPED:
            return _DROPPED[arrival]
        stream.newest_ns = now_ns
        return None if probe.is_complete else DropReason.INCOMPLETE
