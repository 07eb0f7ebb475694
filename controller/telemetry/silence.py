"""Links by which probes have ceased to come, as far as hosts agree on it: what one host says moves no other's path."""

import math
from collections import defaultdict
from collections.abc import Collection, Iterable

from controller.telemetry.candidates import AGREEING, PairCandidates
from controller.telemetry.links import LinkMeasurements


class SilentLinks:
    """The links that are silent: nobody hears probes by them that used to, and as many as have to agree are missing.

    A probe that is missing could have been lost on any link of its path. So a link is silent only where all whose
    probes cross it miss them: several hosts, where it is not one host's alone. It stays so until a port leads over it.
    """

    def __init__(self, measurements: LinkMeasurements) -> None:
        self.links: frozenset[int] = frozenset()
        self._measurements = measurements
        self._crossing: dict[int, set[PairCandidates]] = defaultdict(set)

    def add(self, pair: PairCandidates) -> None:
        """Ask this pair from now on too."""
        for link in pair.links:
            self._crossing[link].add(pair)

    def remove(self, pair: PairCandidates) -> None:
        """Ask it no longer. What nobody could hear of any more is not silent."""
        for link in pair.links:
            self._crossing[link].remove(pair)
            if not self._crossing[link]:
                del self._crossing[link]
        self.links &= self._crossing.keys()

    def look(self, pairs: Collection[PairCandidates], now_s: float) -> bool:
        """See what has changed now that there is news of these pairs; whether anything has."""
        before = self.links
        doubted = {link for pair in pairs for link in pair.doubted_links(now_s)}
        heard = {link for link in before if self._is_heard(link, pairs, now_s)}
        self.links = (before - heard) | {link for link in doubted - before if self._is_silent(link, now_s)}
        return self.links != before

    def _is_heard(self, link: int, pairs: Iterable[PairCandidates], now_s: float) -> bool:
        """Whether one of these pairs hears a link. Others still do not: there is no news of them."""
        crossing = self._crossing[link]
        return any(pair in crossing and pair.hears(link, now_s) for pair in pairs)

    def _is_silent(self, link: int, now_s: float) -> bool:
        measured = self._measurements.get(link)
        heard_s = -math.inf if measured is None else measured.measured_s
        total = 0
        for pair in self._crossing[link]:
            missing = pair.missing(link, heard_s, now_s)
            if missing is None or pair.hears(link, now_s):
                return False
            total += missing
        return total >= AGREEING
