"""Writes decisions to the switches, and what is in force again where links die or others change the routing."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace

from controller.background import run_planning
from controller.metrics import PLANNING
from controller.planning.decision import Decision
from controller.planning.failover_rules import without_dead_paths, without_lacking_paths
from controller.planning.gentle_moves import is_gentle, moves
from controller.planning.live_routing import LiveRouting
from controller.planning.released import without_rules
from controller.planning.standing_rules import StandingRules
from controller.southbound.southbound import Southbound, SouthboundError
from topologies.ecmp import FabricHash
from topologies.fabric_match import FabricMatch
from topologies.routing import Routing


class DecisionWriter:
    """Has one decision at a time in force on the switches; nothing else writes to them meanwhile.

    Attributes:
        decision: The decision in force; None before the first.
    """

    def __init__(self, southbound: Southbound, live: LiveRouting, fabric_hash: FabricHash) -> None:
        self.decision: Decision | None = None
        self._southbound = southbound
        self._live = live
        self._fabric_hash = fabric_hash
        self._writing = asyncio.Lock()
        self._standing: StandingRules | None = None
        """What switches hold until the first decision, where the rules of another writer stay on them."""

    @property
    def is_writing(self) -> bool:
        """Whether something is being written to the switches."""
        return self._writing.locked()

    @asynccontextmanager
    async def nothing_written(self) -> AsyncIterator[None]:
        """Write nothing while the context lasts; it begins once what is being written is written."""
        async with self._writing:
            yield

    async def write(self, decision: Decision, routing: Routing) -> Decision:
        """Have a decision in force on this routing, without links that died since it was begun.

        Returns what was written. Raises SouthboundError where a switch refuses; it is not in force then.
        """
        async with self._writing:
            await self._southbound.serve_levels()
            with PLANNING.labels("write").time():
                self.decision = await self._write(decision, routing)
            self._standing = None
            return self.decision

    def take_over(self, before: "DecisionWriter", match: FabricMatch) -> None:
        """Begin with the rules on switches that a writer on another fabric has left, which writes no longer."""
        if before.decision is not None:
            self._standing = StandingRules(before.decision, match.links)
        elif before._standing is not None:
            self._standing = before._standing.then(match)

    async def route_without(self, routing: Routing) -> None:
        """Have switches routed so before anything else is written to them."""
        self._live.use(routing)
        await self._southbound.reroute({}, routing)

    async def leave_dead_links(self, failed: frozenset[int]) -> None:
        """Withdraw the rules that use links that have failed, and route around these.

        Drained links that the failure makes the last way are used at once. Raises SouthboundError where a switch
        refuses.
        """
        async with self._writing:
            self._live.use(self._live.with_failed(self._live.now, failed))
            if self.decision is not None:
                self.decision = replace(self.decision, rules=without_dead_paths(self.decision, self._live.now.dead))
            held = await self._held(self._live.now)
            await self._southbound.reroute({} if held is None else held.switch_rules, self._live.now)

    async def follow_found_routing(self) -> None:
        """Write the rules in force again where others have changed the next hops to which they lead.

        Raises SouthboundError.
        """
        if self.decision is None or not self._live.is_new:
            return
        async with self._writing:
            self._live.is_new = False
            self.decision = replace(self.decision, rules=without_lacking_paths(self.decision, self._live.now))
            try:
                await self._southbound.write(self.decision.switch_rules)
            except SouthboundError:
                self._live.is_new = True
                raise

    async def release(self) -> None:
        """Withdraw all rules and levels; base routing stays. Raises SouthboundError where a switch refuses."""
        self._standing = None
        if self.decision is not None:
            self.decision = without_rules(self.decision)
        async with self._writing:
            await self._southbound.release()

    async def _write(self, decision: Decision, routing: Routing) -> Decision:
        is_cut_short, before = False, self._live.now
        self._live.is_new = routing.whole is not before.whole
        if not self._live.failed_since(routing) and is_gentle(before, routing):
            self._live.use(routing)
            if await self._move(decision, before, routing):
                return decision
            is_cut_short = True
        if failed := self._live.failed_since(routing):
            routing = self._live.with_failed(routing, failed)
            decision = replace(decision, rules=without_dead_paths(decision, failed))
        if routing.is_same_as(self._live.now) and not is_cut_short:
            await self._southbound.write(decision.switch_rules)
        else:
            self._live.use(routing)
            await self._southbound.reroute(decision.switch_rules, routing)
        return decision

    async def _move(self, decision: Decision, before: Routing, after: Routing) -> bool:
        """Lead flows off drained links, or back to them; stops where a link fails, and returns whether none did.

        Raises SouthboundError, at its end, where a switch refuses.
        """
        first_error: SouthboundError | None = None
        steps = moves(await self._held(before), decision, before, after, self._fabric_hash)
        while (step := await run_planning(next, steps, None)) is not None:
            if self._live.failed_since(after):
                return False
            try:
                await self._southbound.reroute(*step)
            except SouthboundError as error:
                first_error = first_error or error  # the other switches go on
        if first_error is not None:
            raise first_error
        return True

    async def _held(self, routing: Routing) -> Decision | None:
        """The decision whose rules switches hold under a routing: that in force, or the one before a new fabric."""
        if self.decision is not None or self._standing is None:
            return self.decision
        return await run_planning(self._standing.held, routing.dead)
