"""A host's probing put together: what it sends, what it takes in, and what it and the controller say to each other."""

from collections.abc import Mapping
from dataclasses import dataclass
from ipaddress import IPv4Address

from hostlib.telemetry.prober import Pace, Prober, Target
from hostlib.telemetry.probes import Probe
from hostlib.telemetry.receiver import ProbeReport, Receiver

MAX_REPORTS = 4096
"""In one exchange; some 600 KB."""

_FIRST_INTERVAL_S = 0.05
_NS_PER_S = 1_000_000_000


@dataclass(frozen=True, slots=True)
class ProbeExchange:
    """What a host tells the controller; ``number`` counts its session's exchanges, ``clock_ns`` is its clock.

    ``dropped`` are packets that were not reported, by reason, since the session began. ``targets_version`` is that of
    the targets it has, 0 where it has none.
    """

    host: str
    session: int
    number: int
    clock_ns: int
    reports: tuple[ProbeReport, ...]
    dropped: Mapping[str, int]
    targets_version: int


@dataclass(frozen=True, slots=True)
class ProbeAnswer:
    """What the controller answers: when to speak again, and the targets, where they are not those the host has."""

    interval_s: float
    targets_version: int
    targets: tuple[Target, ...]


class ProbeAgent:
    """Probes for one host, which is told the time, carries the packets, and speaks to the controller.

    ``rates_bps`` has the rates of the host's NICs by address. ``session`` is greater than that of any agent of the host
    before; what a host that has just started takes is the time of day in seconds.
    """

    def __init__(
        self, host: str, rates_bps: Mapping[IPv4Address, float], session: int, pace: Pace | None = None, level: int = 0
    ) -> None:
        self.host = host
        self.num_targets = 0
        """Pairs that it probes for."""
        self.strange_addresses: tuple[IPv4Address, ...] = ()
        """Those that the controller takes for this host's, and no NIC has."""
        self._addresses = rates_bps.keys()
        self._session = session
        self._prober = Prober(rates_bps, session, pace, level)
        self._receiver = Receiver(rates_bps.keys())
        self._number = 0
        self._targets_version = 0
        self._exchange_s = 0.0

    @property
    def next_s(self) -> float:
        """When there is next something to do: to send, or to speak to the controller."""
        next_s = self.next_probe_s
        return self._exchange_s if next_s is None else min(next_s, self._exchange_s)

    @property
    def next_probe_s(self) -> float | None:
        """When there is next something to send; None where nothing is, until the controller says so."""
        return self._prober.next_s

    @property
    def next_exchange_s(self) -> float:
        """When it is next time to speak to the controller, unless so many reports wait that it is now."""
        return self._exchange_s

    @property
    def is_full(self) -> bool:
        """Whether as many reports wait as one exchange takes."""
        return self._receiver.waiting >= MAX_REPORTS

    @property
    def waiting(self) -> int:
        """Reports that wait for an exchange."""
        return self._receiver.waiting

    @property
    def dropped(self) -> dict[str, int]:
        """Packets that were not reported, by reason."""
        return {str(reason): packets for reason, packets in self._receiver.dropped.items()}

    def probes(self, now_s: float) -> list[Probe]:
        """What is to be sent now."""
        return self._prober.take(now_s)

    def receive(self, packet: bytes, now_s: float) -> None:
        """An IPv4 packet has come that may be a probe."""
        self._receiver.receive(packet, round(now_s * _NS_PER_S))

    def exchange(self, now_s: float) -> ProbeExchange | None:
        """What to tell the controller, where it is time to.

        Unless it is ``answered``, the reports in it are lost: they would be old by the time a controller is back.
        """
        if now_s < self._exchange_s and not self.is_full:
            return None
        clock_ns = round(now_s * _NS_PER_S)
        self._receiver.forget_idle(clock_ns)
        self._exchange_s = max(self._exchange_s, now_s + _FIRST_INTERVAL_S)
        reports = self._receiver.take_reports(MAX_REPORTS)
        self._number += 1
        return ProbeExchange(
            self.host, self._session, self._number - 1, clock_ns, reports, self.dropped, self._targets_version
        )

    def answered(self, answer: ProbeAnswer, now_s: float) -> None:
        """The controller has answered an exchange."""
        self._exchange_s = now_s + answer.interval_s
        if answer.targets_version != self._targets_version:
            self._targets_version = answer.targets_version
            sources = [target.pair.source_address for target in answer.targets]
            self.num_targets = sum(source in self._addresses for source in sources)
            self.strange_addresses = tuple(sorted(set(sources) - self._addresses))
            self._prober.set_targets(answer.targets, now_s)
