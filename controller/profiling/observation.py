"""One look at a job: its counters over a window, and what they amount to."""

from collections.abc import Mapping

import numpy as np

from controller.profiling.measured import Measured
from controller.profiling.rhythm import Rhythm, find_rhythm
from controller.profiling.shares import path_shares, transfer_s
from topologies.routing import Routing

SentBytes = Mapping[tuple[int, str], int]
"""As counted, by address of a NIC and the host that it sends to."""


class Observation:
    """Readings of a job's counters, begun with the first; links' counters at its two ends tell by which way it sends.

    ``links`` are those of the level that the job has for itself, None where it has none.
    """

    def __init__(self, now_s: float, sent: SentBytes, links: Mapping[int, int] | None) -> None:
        self._first, self._last = sent, sent
        self._links = links
        self._times_s = [now_s]
        self._counted = [float(sum(sent.values()))]

    @property
    def began_s(self) -> float:
        """When the first reading was taken."""
        return self._times_s[0]

    def add(self, now_s: float, sent: SentBytes) -> bool:
        """Another reading; False where a counter has begun anew, so that the observation has to."""
        if any(sent.get(traffic, -1) < before for traffic, before in self._last.items()):
            return False
        self._times_s.append(now_s)
        self._counted.append(float(sum(sent.values())))
        self._last = sent
        return True

    def rhythm(self) -> Rhythm | None:
        """The rhythm of all that the job sends; None where there is none yet."""
        return find_rhythm(np.array(self._times_s), np.array(self._counted))

    def measured(self, rhythm: Rhythm, links: Mapping[int, int], bytes_per_count: float, routing: Routing) -> Measured:
        """What the readings amount to, the links' counters being ``links`` now; a counted byte stands for several."""
        assert self._links is not None, "a job is measured while it has a level for itself"
        iterations = (self._counted[-1] - self._counted[0]) / rhythm.iteration_bytes
        per_iteration = bytes_per_count / iterations
        nics = routing.fabric.nic_by_address
        sent_bytes = {
            (nics[address], host): (counted - self._first.get((address, host), 0)) * per_iteration
            for (address, host), counted in self._last.items()
        }
        link_bytes = {
            link: max(0, counted - self._links.get(link, counted)) * per_iteration for link, counted in links.items()
        }
        shares = path_shares(sent_bytes, link_bytes, routing)
        return Measured(self._times_s[-1], rhythm, transfer_s(shares, routing), shares)
