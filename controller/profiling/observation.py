"""Observe one job: read its counters over a window, and evaluate them."""

from collections.abc import Collection, Mapping
from typing import Protocol

import numpy as np

from controller.profiling.measured import Measured
from controller.profiling.rhythm import Rhythm, find_rhythm
from controller.profiling.shares import path_shares, transfer_s
from topologies.routing import Routing

SentBytes = Mapping[tuple[int, str], int]
"""Byte counts by the address of the sending NIC and the receiving host."""


class Counters(Protocol):
    """Byte counters of a fabric's switches, which start anywhere; None means that a switch did not answer."""

    async def job_bytes(self, switches: Collection[str]) -> SentBytes | None:
        """Read what the rules for whole jobs on these switches have counted."""

    async def level_bytes(self, level: int) -> Mapping[int, int] | None:
        """Read what has left by every link of all switches at a level."""


class Observation:
    """Readings of a job's counters, the first one taken at its creation.

    ``links`` are the counters of the level that the job has for itself, None if it has none. Together with a reading at
    the end they show over which links the job sends.
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
        """Add a reading; return False if a counter has restarted, so that the observation must, too."""
        if any(sent.get(traffic, -1) < before for traffic, before in self._last.items()):
            return False
        self._times_s.append(now_s)
        self._counted.append(float(sum(sent.values())))
        self._last = sent
        return True

    def rhythm(self) -> Rhythm | None:
        """Return the rhythm of all that the job sends, None if there is none yet."""
        return find_rhythm(np.array(self._times_s), np.array(self._counted))

    def measured(self, rhythm: Rhythm, links: Mapping[int, int], bytes_per_count: float, routing: Routing) -> Measured:
        """Evaluate the readings.

        Args:
            rhythm: The rhythm that was found in them.
            links: The counters of the job's own level now.
            bytes_per_count: Bytes of jobs that a counted byte stands for.
            routing: How the fabric routes.
        """
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
