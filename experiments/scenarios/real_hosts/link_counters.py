"""What links have carried, as switches count it by level, and as hosts' interfaces count it in all."""

from contextlib import suppress
from types import TracebackType
from typing import Self

import numpy as np
from numpy.typing import NDArray

from experiments.scenarios.real_hosts.laboratory import Laboratory
from experiments.scenarios.real_hosts.switches import CountersAwayError, SwitchCounters
from experiments.scenarios.results import LoadSample
from topologies.fabric import Fabric

_LEVELS = 8


class LinkCounters:
    """Reads the counters of a fabric's links, as an async context manager.

    A switch counts what leaves by its ports, by level. Hosts' interfaces count what hosts send; it has no level, and is
    counted as level 0. What has been sent before the context is entered does not count.

    Args:
        fabric: The fabric, at the rates that its links have.
        laboratory: The hosts.
        switches: The counters of its switches.
    """

    def __init__(self, fabric: Fabric, laboratory: Laboratory, switches: SwitchCounters) -> None:
        self._fabric = fabric
        self._laboratory = laboratory
        self._switches = switches
        self._seconds_per_byte = 8 / np.array([link.rate_bps for link in fabric.links])
        self._bytes = np.zeros((len(fabric.links), _LEVELS), dtype=np.int64)
        self._read_s = 0.0
        self._counted_packets = 0
        self.packets = 0
        """Packets that switches have sent."""

    async def __aenter__(self) -> Self:
        with suppress(CountersAwayError):  # what does not answer now counts from 0 later
            self._bytes, self._counted_packets = await self._read()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        """Leave the counters as they are."""

    async def sample(self, now_s: float) -> LoadSample:
        """Return the utilisation of every link by level since the last sample.

        Raises:
            CountersAwayError: The switches do not answer.
            NetworkError: The interfaces of hosts are gone.
        """
        found, counted = await self._read()
        # A switch that has been started again counts from 0.
        self.packets += counted - self._counted_packets if counted >= self._counted_packets else counted
        self._counted_packets = counted
        sent = np.where(found >= self._bytes, found - self._bytes, found)
        utilisation = sent * self._seconds_per_byte[:, np.newaxis] / max(now_s - self._read_s, 1e-9)
        sample = LoadSample(self._read_s, now_s, tuple(tuple(row) for row in utilisation.tolist()))
        self._bytes, self._read_s = found, now_s
        return sample

    async def _read(self) -> tuple[NDArray[np.int64], int]:
        found, packets = np.zeros_like(self._bytes), 0
        counted = await self._switches.read()
        for switch in self._fabric.switches:
            for link in self._fabric.links_from[switch]:
                for level, (sent_bytes, sent_packets) in enumerate(counted[switch, link.source_port]):
                    found[link.index, level] = sent_bytes
                    packets += sent_packets
        for (host, nic), (sent, _) in self._laboratory.frame_bytes().items():
            found[self._fabric.nics[host][nic].link, 0] = sent
        return found, packets
