"""Detect links that lose all probes, by the agreement of the hosts whose probes cross them."""

import math
from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping

from controller.telemetry.link_measurements import LinkMeasurements
from controller.telemetry.pair_monitor import PairMonitor
from controller.telemetry.path_table import REPORTS_TO_CONFIRM

_VOTE_INTERVAL_S = 1.0
"""The shortest time between two votes on the same link."""

_Ends = tuple[str, str]
"""The sending and the receiving host of a pair."""


class LinkFailureDetector:
    """Finds silent links: those that lose every probe.

    A missing probe may have been lost on any link of its path. So a link is silent only if every pair whose probes
    cross it misses them, and no host moves the traffic of others alone. Hosts that claim to receive probes over the
    link are ``overruled`` if three times as many other hosts would have to be wrong, for ``stale_after_s``. A link
    stays silent until probes cross it again, of a host that is not overruled if there is one.
    """

    def __init__(self, measurements: LinkMeasurements, stale_after_s: float) -> None:
        self.silent_links: frozenset[int] = frozenset()
        self.overruled: Mapping[int, frozenset[str]] = {}
        """By silent link, the hosts that claim to receive probes over it."""
        self._measurements = measurements
        self._stale_after_s = stale_after_s
        self._crossing: dict[int, dict[PairMonitor, _Ends]] = defaultdict(dict)
        self._next_vote_s: dict[int, float] = {}

    def add_pair(self, pair: PairMonitor, source: str, destination: str) -> None:
        """Take the evidence of a pair between two hosts into account."""
        for link in pair.table.links:
            self._crossing[link][pair] = source, destination

    def remove_pair(self, pair: PairMonitor) -> None:
        """Ignore a pair from now on; links that no pair crosses any longer are not silent."""
        for link in pair.table.links:
            del self._crossing[link][pair]
            if not self._crossing[link]:
                del self._crossing[link]
        self._set(self.silent_links & self._crossing.keys(), self.overruled)

    def update(self, pairs: Collection[PairMonitor], now_s: float) -> bool:
        """Judge the links of these pairs anew, which have new reports; return whether ``silent_links`` changed."""
        before = self.silent_links
        suspected = {link for pair in pairs for link in pair.suspected_links(now_s)} - before
        recovered = {link for link in before if self._has_recovered(link, pairs, now_s)}
        silent = {link for link in suspected if self._is_silent(link, now_s)}
        overruled = {link: hosts for link in suspected - silent if (hosts := self._vote(link, now_s))}
        self._set((before - recovered) | silent | overruled.keys(), {**self.overruled, **overruled})
        return self.silent_links != before

    def _set(self, links: Collection[int], overruled: Mapping[int, frozenset[str]]) -> None:
        self.silent_links = frozenset(links)
        self.overruled = {link: hosts for link, hosts in overruled.items() if link in self.silent_links}

    def _has_recovered(self, link: int, pairs: Iterable[PairMonitor], now_s: float) -> bool:
        """Return whether one of these pairs sees a silent link work again.

        Pairs without new reports cannot have changed their mind. Overruled hosts count only if no other host is left.
        """
        crossing, overruled = self._crossing[link], self.overruled.get(link, frozenset())
        heeded = [pair for pair in pairs if pair in crossing and crossing[pair][1] not in overruled]
        if not heeded and overruled.issuperset(reporter for _, reporter in crossing.values()):
            heeded = [pair for pair in pairs if pair in crossing]
        return any(pair.sees_working(link, now_s) for pair in heeded)

    def _is_silent(self, link: int, now_s: float) -> bool:
        """Return whether all pairs over a link agree that it loses their probes."""
        measured = self._measurements.get(link)
        heard_s = -math.inf if measured is None else measured.measured_s
        total = 0
        for pair in self._crossing[link]:
            missing = pair.missing_probes(link, heard_s, now_s)
            if missing is None or pair.sees_working(link, now_s):
                return False
            total += missing
        return total >= REPORTS_TO_CONFIRM

    def _vote(self, link: int, now_s: float) -> frozenset[str]:
        """Return the hosts to overrule because so many others miss the link; nobody if these are too few."""
        if now_s < self._next_vote_s.get(link, -math.inf):
            return frozenset()
        self._next_vote_s[link] = now_s + _VOTE_INTERVAL_S
        measured = self._measurements.get(link)
        by_host = {} if measured is None else measured.window_bytes
        # Their probes may have come from ports that are not kept.
        recent = {host for host, (measured_s, _) in by_host.items() if measured_s > now_s - self._stale_after_s}
        working, broken = set[_Ends](), set[_Ends]()
        for pair, ends in self._crossing[link].items():
            if ends[1] in recent or pair.sees_working(link, now_s):
                working.add(ends)
            elif pair.sees_broken(link, self.silent_links):
                broken.add(ends)
        claimants = frozenset(reporter for _, reporter in working)
        needed = REPORTS_TO_CONFIRM * len(claimants)
        senders = {sender for sender, _ in working}
        is_overruled = all(_independent_witnesses(broken, sender, claimants) >= needed for sender in senders)
        return claimants if is_overruled else frozenset()


def _independent_witnesses(broken: Iterable[_Ends], sender: str, claimants: Collection[str]) -> int:
    """Count the hosts, beside a sender and the claimants, that must be wrong if the link works.

    Either host of a pair may be the reason why the pair misses the link, so two pairs that share a host count once.
    All receivers of a sender miss what it does not send, but then only its own flows are affected.
    """
    seen, count = set(claimants), 0
    for ends in sorted(broken, key=lambda ends: (ends[0] != sender, ends)):
        others = set(ends) - {sender}
        if seen.isdisjoint(others):
            seen |= others
            count += 1
    return count
