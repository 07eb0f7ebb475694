"""Measure the loads of links by the byte counters of switches that know no INT."""

from collections.abc import Collection, Mapping

from controller.links.quiet_links import LinkCounters

PERIOD_S = 1.0
"""How often counters are read: a switch answers with all its ports at once, so that this costs it little."""


class CountedLoads:
    """The mean load of links between two readings of their counters."""

    def __init__(self, counters: LinkCounters, links: Collection[int]) -> None:
        self._counters = counters
        self._links = frozenset(links)
        self._before: Mapping[int, int] = {}
        self._before_s = 0.0

    async def read(self, now_s: float) -> Mapping[int, float]:
        """Read the counters at ``now_s``; return the loads since the reading before, in bps, with headers.

        A link is missing where its switch did not answer twice in a row, or where its counter has begun anew.
        """
        counts = await self._counters.link_bytes(self._links) if self._links else {}
        before, elapsed_s = self._before, now_s - self._before_s
        self._before, self._before_s = counts, now_s
        if elapsed_s <= 0:
            return {}
        return {
            link: 8 * (count - before[link]) / elapsed_s
            for link, count in counts.items()
            if before.get(link, count + 1) <= count
        }
