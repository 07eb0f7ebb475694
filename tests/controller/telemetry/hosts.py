"""Pairs of NICs whose hosts probe each port in turn, by links that may be lost."""

from collections.abc import Mapping, Sequence

from controller.telemetry.link_failures import LinkFailureDetector
from controller.telemetry.link_measurements import LinkMeasurements
from controller.telemetry.pair_monitor import PairMonitor
from tests.controller.telemetry.reports import samples
from topologies.fabric import Path

STALE_S = 5.0
# Two hosts' NICs behind the same ToR: links 1 and 2 lead to it by one switch, 3 and 4 by another.
TO_ONE: tuple[Path, ...] = ((0, 1, 2, 8), (0, 3, 4, 8))
TO_OTHER: tuple[Path, ...] = ((0, 1, 2, 9), (0, 3, 4, 9))
PORTS = {50_000: 0, 50_001: 0, 50_002: 1, 50_003: 1}
"""And which of the paths each leads along."""


class Hosts:
    """Pairs of NICs whose probes several hosts report, and what they take for silent together."""

    def __init__(self, *allowed: Sequence[Path], ends: Sequence[tuple[str, str]] = ()) -> None:
        self.measurements = LinkMeasurements(window_us=1.0)
        self.failures = LinkFailureDetector(self.measurements, STALE_S)
        self.pairs = [PairMonitor(paths, STALE_S) for paths in allowed]
        self._paths = list(allowed)
        self._sequences: dict[tuple[int, int], int] = {}
        self._numbers = [0] * len(allowed)
        self._ends = ends or [("s", f"h{number}") for number in range(len(allowed))]
        for pair, (source, destination) in zip(self.pairs, self._ends, strict=True):
            self.failures.add_pair(pair, source, destination)
        for now_s in (0.0, 0.01, 0.02, 1.0):
            for number in range(len(self.pairs)):
                self.round(number, now_s)

    def round(self, number: int, now_s: float, lost: int | None = None, ways: Mapping[int, int] = PORTS) -> None:
        """Every port of a pair is probed once, in turn; what crosses the link that is lost does not come."""
        for port in ways:
            sequence = self._sequences.get((number, port), 0)
            self._sequences[number, port] = sequence + 1
            self._numbers[number] += 1
            path = self._paths[number][ways[port]]
            if lost not in path:
                self.pairs[number].record_probe(port, sequence, self._numbers[number], path, now_s)
                self.measurements.record(samples(path, now_s, window_bytes=0), self._ends[number][1])
        self.failures.update([self.pairs[number]], now_s)


def senders_to(hosts: Sequence[str], *senders: str) -> Hosts:
    """Senders whose pairs share one first link each, of two; from there on all pairs to a host share theirs."""
    ends = [(sender, host) for sender in senders for host in hosts]
    firsts = {sender: (100 + 10 * number, 101 + 10 * number) for number, sender in enumerate(senders)}
    return Hosts(
        *(
            tuple((0, first, 10 * way + hosts.index(host)) for way, first in enumerate(firsts[sender]))
            for sender, host in ends
        ),
        ends=ends,
    )
