"""The traffic on the emulated fabric: jobs' transfers, and the NICs of probing agents."""

import asyncio
from collections import deque
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

from emulator.fabric import PS_PER_S, EmulatedFabric
from emulator.observations import Completion
from tests.chaos.agents import Nics
from topologies.addressing import FiveTuple
from topologies.routing import Routing


@dataclass(eq=False)
class Transfer:
    """A transfer of a flow, started at ``began_s``; ``arrived`` is done when its last byte has arrived."""

    five_tuple: FiveTuple
    size_bytes: int
    began_s: float
    arrived: "asyncio.Future[Any]" = field(repr=False)


class Traffic:
    """Transfers between NICs; those of one 5-tuple run one after the other."""

    def __init__(self, fabric: EmulatedFabric) -> None:
        self.num_arrived = 0
        self.fabric = fabric
        self.nics = Nics(fabric)
        self._flows: dict[FiveTuple, int] = {}
        self._waiting: dict[int, deque[Transfer]] = {}

    @property
    def unfinished(self) -> list[Transfer]:
        """The transfers that have not arrived."""
        return [transfer for waiting in self._waiting.values() for transfer in waiting]

    def has_path(self, transfer: Transfer, routing: Routing) -> bool:
        """Whether a transfer and its acknowledgements have a path."""
        nics = self.fabric.fabric.nic_by_address
        ends = nics[transfer.five_tuple.source_address], nics[transfer.five_tuple.destination_address]
        return bool(routing.candidate_paths(*ends)) and bool(routing.candidate_paths(*reversed(ends)))

    async def all_arrived(self, routing: Routing, timeout_s: float) -> None:
        """Wait until every transfer that has a path has arrived, or for this long."""
        with suppress(TimeoutError):
            async with asyncio.timeout(timeout_s):
                while unfinished := [one for one in self.unfinished if self.has_path(one, routing)]:
                    await asyncio.wait([transfer.arrived for transfer in unfinished])

    def send(self, five_tuple: FiveTuple, size_bytes: int) -> Transfer:
        """Start a transfer, after those before it."""
        flow = self._flows.get(five_tuple)
        if flow is None:
            flow = self._flows[five_tuple] = self.fabric.add_flow(five_tuple)
            self._waiting[flow] = deque()
        arrived = asyncio.get_running_loop().create_future()
        transfer = Transfer(five_tuple, size_bytes, self.fabric.now_ps / PS_PER_S, arrived)
        self._waiting[flow].append(transfer)
        if len(self._waiting[flow]) == 1:
            self.fabric.start_transfer(flow, size_bytes)
        return transfer

    def arrive(self, completions: tuple[Completion, ...]) -> None:
        """Mark these transfers as arrived."""
        for completion in completions:
            waiting = self._waiting[completion.flow]
            arrived = waiting.popleft().arrived
            self.num_arrived += 1
            if not arrived.done():
                arrived.set_result(None)
            if waiting:
                self.fabric.start_transfer(completion.flow, waiting[0].size_bytes)
