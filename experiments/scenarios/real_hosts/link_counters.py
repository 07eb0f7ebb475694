"""What links have carried, as switches count it by level, and as hosts' interfaces count it in all."""

import asyncio
from collections.abc import Mapping
from contextlib import suppress
from types import TracebackType
from typing import Self

import grpc
import numpy as np
from finsy.proto import p4i, p4r, p4r_grpc
from google.protobuf import text_format
from numpy.typing import NDArray

from experiments.scenarios.real_hosts.laboratory import Laboratory
from experiments.scenarios.results import LoadSample
from p4src import P4INFO
from topologies.fabric import Fabric

_LEVELS = 8
_COUNTER = "level_counter"
_DEADLINE_S = 10.0


class LinkCounters:
    """Reads the counters of a fabric's links by P4Runtime, as an async context manager.

    A switch counts what leaves by its ports, by level. Hosts' interfaces count what hosts send; it has no level, and is
    counted as level 0. What has been sent before the context is entered does not count.

    Args:
        fabric: The fabric, at the rates that its links have.
        laboratory: The hosts.
        address: The P4Runtime address of all switches, whose device ids count from 1.
    """

    def __init__(self, fabric: Fabric, laboratory: Laboratory, address: str) -> None:
        self._fabric = fabric
        self._laboratory = laboratory
        self._channel = grpc.aio.insecure_channel(address)
        self._counter_id = _counter_id()
        self._seconds_per_byte = 8 / np.array([link.rate_bps for link in fabric.links])
        self._bytes = np.zeros((len(fabric.links), _LEVELS), dtype=np.int64)
        self._read_s = 0.0
        self._counted_packets = 0
        self.packets = 0
        """Packets that switches have sent."""

    async def __aenter__(self) -> Self:
        with suppress(grpc.RpcError):  # what does not answer now counts from 0 later
            self._bytes, self._counted_packets = await self._read()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        await self._channel.close()

    async def sample(self, now_s: float) -> LoadSample:
        """Return the utilisation of every link by level since the last sample. Raises RpcError where that fails."""
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
        found = np.zeros_like(self._bytes)
        counted = await asyncio.gather(*map(self._of_switch, self._fabric.switches))
        for switch, of_switch in zip(self._fabric.switches, counted, strict=True):
            for link in self._fabric.links_from[switch]:
                for level in range(_LEVELS):
                    found[link.index, level] = of_switch[link.source_port * _LEVELS + level].byte_count
        for (host, nic), (sent, _) in self._laboratory.frame_bytes().items():
            found[self._fabric.nics[host][nic].link, 0] = sent
        return found, sum(data.packet_count for of_switch in counted for data in of_switch.values())

    async def _of_switch(self, switch: str) -> Mapping[int, p4r.CounterData]:
        request = p4r.ReadRequest(device_id=1 + self._fabric.switch_index[switch])
        for link in self._fabric.links_from[switch]:
            for level in range(_LEVELS):
                entry = request.entities.add().counter_entry
                entry.counter_id = self._counter_id
                entry.index.index = link.source_port * _LEVELS + level
        stub = p4r_grpc.P4RuntimeStub(self._channel)
        return {
            entity.counter_entry.index.index: entity.counter_entry.data
            async for response in stub.Read(request, timeout=_DEADLINE_S)
            for entity in response.entities
        }


def _counter_id() -> int:
    p4info = text_format.Parse(P4INFO.read_text(), p4i.P4Info())
    return next(counter.preamble.id for counter in p4info.counters if counter.preamble.alias == _COUNTER)
