"""How loaded the paths between NICs are: jobs ask before they choose the hosts that are to send to each other."""

import asyncio
from collections.abc import Iterator

import numpy as np

from controller.api.calls import Caller
from controller.api.context import ServiceContext
from controller.background import in_slices, run_planning
from controller.planning.decision import Decision
from controller.registry.admission import find_nic
from controller.registry.errors import InvalidFieldError
from controller.registry.requests import NicReference
from controller.telemetry.planned_loads import PlannedLoads
from hostlib.messages import MAX_PAIRS_PER_CALL
from hostlib.wire import trainyard_pb2 as wire
from policies.arrays import FloatArray
from topologies.fabric import Nic
from topologies.routing import Routing

_PAIRS_AT_ONCE = 10
_BYTES_PER_PATH = 16
"""As many bytes of a request take as long as one path."""


class PathLoads:
    """Answers questions for the loads of paths.

    A link's load is what hosts measured in the last seconds. Where they measured nothing, it is what the Plan in force
    sends, with each job iterating as if alone.
    """

    def __init__(self, context: ServiceContext) -> None:
        self._fabric = context.planner.routing.fabric
        self._planner = context.planner
        self._telemetry = context.telemetry
        self._clock = context.clock
        self._calls = context.calls
        self._planned = np.zeros(len(self._fabric.links))
        self._planned_for: Decision | None = None
        self._adding_up = asyncio.Lock()

    async def answer(self, request: wire.GetPathLoadsRequest, caller: Caller) -> wire.GetPathLoadsResponse:
        """Answer one request. Raises InvalidFieldError, and RateLimitError where the caller asks too often."""
        if len(request.pairs) > MAX_PAIRS_PER_CALL:
            raise InvalidFieldError(f"pairs: one call has room for {MAX_PAIRS_PER_CALL:,}")
        pairs = [self._nics(pair, f"pairs[{position}]") for position, pair in enumerate(request.pairs)]
        await self._follow(self._planner.decision)
        measured = self._telemetry.foreign_loads.utilisation(self._clock.now_s())
        links = _Links(np.where(np.isnan(measured), self._planned, measured), np.array(self._fabric.rates_bps))
        response = wire.GetPathLoadsResponse()
        await in_slices(links.adding(pairs, self._planner.routing, response), _PAIRS_AT_ONCE)
        await self._calls.charge(caller, response.ByteSize() + _BYTES_PER_PATH * links.num_paths)
        return response

    def _nics(self, pair: wire.NicPair, field: str) -> tuple[Nic, Nic]:
        source = find_nic(NicReference(pair.source.host, pair.source.nic), self._fabric, f"{field}.source")
        destination = find_nic(
            NicReference(pair.destination.host, pair.destination.nic), self._fabric, f"{field}.destination"
        )
        if source.host == destination.host:
            raise InvalidFieldError(f"{field}.destination.host: expected another host than the source's")
        return source, destination

    async def _follow(self, decision: Decision | None) -> None:
        """Add up what a decision sends, unless that is known: one caller does, and all others wait."""
        if decision is None or decision is self._planned_for:
            return
        async with self._adding_up:
            if decision is not self._planned_for:
                planned = await run_planning(PlannedLoads.of, decision.snapshot, decision.plan)
                self._planned, self._planned_for = planned.utilisation[: len(self._fabric.links)], decision


class _Links:
    """Links with their loads, as shares of their rates."""

    def __init__(self, loads: FloatArray, rates_bps: FloatArray) -> None:
        self._loads = loads
        self._free_bps = np.maximum(1.0 - loads, 0.0) * rates_bps[: len(loads)]
        self.num_paths = 0

    def adding(
        self, pairs: list[tuple[Nic, Nic]], routing: Routing, response: wire.GetPathLoadsResponse
    ) -> Iterator[None]:
        """Add what the paths between NICs offer to a response, one pair after the other."""
        for source, destination in pairs:
            found = response.loads.add()
            paths = routing.candidate_paths(source, destination)
            if paths:
                links = np.concatenate(paths)
                first = np.cumsum([0, *map(len, paths[:-1])])  # paths may differ in length
                found.load = np.maximum.reduceat(self._loads[links], first).min()
                found.free_bps = np.minimum.reduceat(self._free_bps[links], first).max()
            self.num_paths += len(paths)
            yield
