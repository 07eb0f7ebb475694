"""What P4 switches have sent by port and level, as their counters say over P4Runtime."""

import asyncio
from collections.abc import Mapping
from types import TracebackType
from typing import Self

import grpc
from finsy.proto import p4i, p4r, p4r_grpc
from google.protobuf import text_format

from experiments.scenarios.real_hosts.switches import CountersAwayError
from p4src import P4INFO
from topologies.fabric import Fabric

_LEVELS = 8
_COUNTER = "level_counter"
_DEADLINE_S = 10.0


class P4Counters:
    """The counters of a fabric's switches, as an async context manager.

    Args:
        fabric: The fabric.
        address: The P4Runtime address of all switches.
    """

    def __init__(self, fabric: Fabric, address: str) -> None:
        self._fabric = fabric
        self._channel = grpc.aio.insecure_channel(address)
        self._counter_id = _counter_id()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        await self._channel.close()

    async def read(self) -> Mapping[tuple[str, int], list[tuple[int, int]]]:
        """See ``SwitchCounters``."""
        try:
            counted = await asyncio.gather(*map(self._of_switch, self._fabric.switches))
        except grpc.RpcError as error:
            raise CountersAwayError(str(error)) from error
        return {
            (switch, link.source_port): [
                (data.byte_count, data.packet_count)
                for data in (of_switch[link.source_port * _LEVELS + level] for level in range(_LEVELS))
            ]
            for switch, of_switch in zip(self._fabric.switches, counted, strict=True)
            for link in self._fabric.links_from[switch]
        }

    async def _of_switch(self, switch: str) -> Mapping[int, p4r.CounterData]:
        request = p4r.ReadRequest(device_id=self._fabric.device_ids[switch])
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
