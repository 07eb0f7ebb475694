"""Probe agent of a host: what to send, what has arrived, and the exchanges with the controller. Performs no I/O."""

from collections.abc import Mapping
from dataclasses import dataclass
from ipaddress import IPv4Address

from hostlib.telemetry.prober import Pace, Prober, Target
from hostlib.telemetry.probes import Probe
from hostlib.telemetry.receiver import ProbeReport, Receiver

MAX_REPORTS = 4096
"""Reports in one exchange; some 600 KB."""

_FIRST_INTERVAL_S = 0.05
_NS_PER_S = 1_000_000_000


@dataclass(frozen=True, slots=True)
class ProbeExchange:
    """A host's report to the controller. ``number`` counts the session's exchanges, ``clock_ns`` is the host's clock.

    ``dropped`` counts packets that were not reported, by reason, since the session began. ``targets_version`` is that
    of the host's targets, 0 if it has none.
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
    """The controller's answer: the time until the next exchange, and the targets if the host's are out of date."""

    interval_s: float
    targets_version: int
    targets: tuple[Target, ...]


class ProbeAgent:
    """Probes for one host. The caller provides the time, carries packets, and talks to the controller.

    ``rates_bps`` has the rates of the host's NICs by address. ``session``, of 32 bits, tells this run of the agent from
    others; an agent that starts draws it at random.
    """

    def __init__(
        self, host: str, rates_bps: Mapping[IPv4Address, float], session: int, pace: Pace | None = None, level: int = 0
    ) -> None:
        self.host = host
        self.num_targets = 0
        """Pairs that have probes."""
        self.unknown_addresses: tuple[IPv4Address, ...] = ()
        """Source addresses of targets that belong to no NIC of this host."""
        self._addresses = rates_bps.keys()
        self._session = session
        self._prober = Prober(rates_bps, session, pace, level)
        self._receiver = Receiver(rates_bps.keys())
        self._number = 0
        self._targets_version = 0
        self._exchange_s = 0.0

    @property
    def next_s(self) -> float:
        """When to send or to talk to the controller next."""
        next_s = self.next_probe_s
        return self._exchange_s if next_s is None else min(next_s, self._exchange_s)

    @property
    def next_probe_s(self) -> float | None:
        """When to send next; None if there is nothing to send until the controller answers."""
        return self._prober.next_s

    @property
    def next_exchange_s(self) -> float:
        """When the next exchange is due, unless ``is_full``."""
        return self._exchange_s

    @property
    def is_full(self) -> bool:
        """Whether enough reports wait to fill an exchange."""
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
        """Return the probes to send now."""
        return self._prober.take(now_s)

    def receive(self, packet: bytes, now_s: float) -> None:
        """Take an IPv4 packet that may be a probe."""
        self._receiver.receive(packet, round(now_s * _NS_PER_S))

    def exchange(self, now_s: float) -> ProbeExchange | None:
        """Return what to report to the controller, if an exchange is due.

        If ``answered`` does not follow, the reports in it are lost; they would be too old when a controller is back.
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
        """Take the controller's answer to an exchange."""
        self._exchange_s = now_s + answer.interval_s
        if answer.targets_version != self._targets_version:
            self._targets_version = answer.targets_version
            sources = [target.pair.source_address for target in answer.targets]
            self.num_targets = sum(source in self._addresses for source in sources)
            self.unknown_addresses = tuple(sorted(set(sources) - self._addresses))
            self._prober.set_targets(answer.targets, now_s)
