"""Links by which probes have ceased to come, as far as hosts agree on it: what one host says moves no other's path."""

import math
from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping

from controller.telemetry.candidates import AGREEING, PairCandidates
from controller.telemetry.links import LinkMeasurements

_VOTE_S = 1.0
"""How often at most it is asked whether a link's claimants are outvoted."""

_Ends = tuple[str, str]
"""The hosts that probes of a pair leave and come to."""


class SilentLinks:
    """The links that are silent: nobody hears probes by them that used to, and as many as have to agree are missing.

    A probe that is missing could have been lost on any link of its path. So a link is silent only where all whose
    probes cross it miss them: several hosts, where it is not one host's alone. Hosts that claim to hear it are
    ``outvoted`` where, beside them and whoever sends what they claim to hear, three times as many hosts would have to
    be wrong, for ``stale_after_s``. A link is silent until a port leads over it, of others than its claimants where
    there are any.
    """

    def __init__(self, measurements: LinkMeasurements, stale_after_s: float) -> None:
        self.links: frozenset[int] = frozenset()
        self.outvoted: Mapping[int, frozenset[str]] = {}
        """Hosts that claim to hear a silent link."""
        self._measurements = measurements
        self._stale_after_s = stale_after_s
        self._crossing: dict[int, dict[PairCandidates, _Ends]] = defaultdict(dict)
        self._next_vote_s: dict[int, float] = {}

    def add(self, pair: PairCandidates, source: str, destination: str) -> None:
        """Ask this pair from now on too, which is of two hosts' NICs."""
        for link in pair.links:
            self._crossing[link][pair] = source, destination

    def remove(self, pair: PairCandidates) -> None:
        """Ask it no longer. What nobody could hear of any more is not silent."""
        for link in pair.links:
            del self._crossing[link][pair]
            if not self._crossing[link]:
                del self._crossing[link]
        self._set(self.links & self._crossing.keys(), self.outvoted)

    def look(self, pairs: Collection[PairCandidates], now_s: float) -> bool:
        """See what has changed now that there is news of these pairs; whether anything has."""
        before = self.links
        doubted = {link for pair in pairs for link in pair.doubted_links(now_s)} - before
        heard = {link for link in before if self._is_heard(link, pairs, now_s)}
        silent = {link for link in doubted if self._is_silent(link, now_s)}
        outvoted = {link: claimants for link in doubted - silent if (claimants := self._outvoted(link, now_s))}
        self._set((before - heard) | silent | outvoted.keys(), {**self.outvoted, **outvoted})
        return self.links != before

    def _set(self, links: Collection[int], outvoted: Mapping[int, frozenset[str]]) -> None:
        self.links = frozenset(links)
        self.outvoted = {link: claimants for link, claimants in outvoted.items() if link in self.links}

    def _is_heard(self, link: int, pairs: Iterable[PairCandidates], now_s: float) -> bool:
        """Whether one of these pairs hears a link. Others still do not: there is no news of them.

        The outvoted are only asked where nobody else is left.
        """
        crossing, claimants = self._crossing[link], self.outvoted.get(link, frozenset())
        heeded = [pair for pair in pairs if pair in crossing and crossing[pair][1] not in claimants]
        if not heeded and claimants.issuperset(reporter for _, reporter in crossing.values()):
            heeded = [pair for pair in pairs if pair in crossing]
        return any(pair.hears(link, now_s) for pair in heeded)

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

    def _outvoted(self, link: int, now_s: float) -> frozenset[str]:
        """Those that claim to hear a link, where so many miss it that they are not believed; else nobody."""
        if now_s < self._next_vote_s.get(link, -math.inf):
            return frozenset()
        self._next_vote_s[link] = now_s + _VOTE_S
        measured = self._measurements.get(link)
        told = {} if measured is None else measured.window_bytes
        # It may have come from a port that is not kept.
        lately = {reporter for reporter, (told_s, _) in told.items() if told_s > now_s - self._stale_after_s}
        claimed, missed = set[_Ends](), set[_Ends]()
        for pair, ends in self._crossing[link].items():
            if ends[1] in lately or pair.hears(link, now_s):
                claimed.add(ends)
            elif pair.misses(link, self.links):
                missed.add(ends)
        claimants = frozenset(reporter for _, reporter in claimed)
        needed = AGREEING * len(claimants)
        agree = all(_witnesses(missed, sender, claimants) >= needed for sender in {sender for sender, _ in claimed})
        return claimants if agree else frozenset()


def _witnesses(missed: Iterable[_Ends], sender: str, claimants: Collection[str]) -> int:
    """How many hosts, beside a sender and the claimants, would have to be wrong at least for pairs to hear a link.

    Either host of a pair may be the reason why it misses the link, so that no two pairs count that share one. What the
    sender itself does not send is missed by all whom it sends to, but then only its own flows are concerned.
    """
    seen, count = set(claimants), 0
    for ends in sorted(missed, key=lambda ends: (ends[0] != sender, ends)):
        others = set(ends) - {sender}
        if seen.isdisjoint(others):
            seen |= others
            count += 1
    return count
