"""The planning loop: a change of the registry becomes a Plan, the Plan rules on switches and directives to jobs."""

import asyncio
import logging
from contextlib import suppress

from controller.clock import Clock
from controller.decision import Decision, directives_of
from controller.directives import DirectiveBoard
from controller.policy.catalogue import decide
from controller.policy.policy_name import PolicyName
from controller.registry import Registry
from controller.snapshots import Snapshots
from controller.southbound.rules import flow_rules
from controller.southbound.southbound import Southbound, SouthboundError
from topologies.routing import Routing

_LOG = logging.getLogger(__name__)

_RETRY_S = 1.0


class Planner:
    """Plans once at a time; changes that come meanwhile wait together for the next Plan.

    ``decision`` is what is in force: written to the switches and published to the jobs. None before the first.
    """

    def __init__(
        self,
        registry: Registry,
        snapshots: Snapshots,
        routing: Routing,
        policy: PolicyName,
        southbound: Southbound,
        board: DirectiveBoard,
        clock: Clock,
    ) -> None:
        self.decision: Decision | None = None
        self._registry = registry
        self._snapshots = snapshots
        self._routing = routing
        self._policy = policy
        self._southbound = southbound
        self._board = board
        self._clock = clock
        self._planning = asyncio.Lock()
        self._changed = asyncio.Event()

    def mark_changed(self) -> None:
        """The registry has changed: the Plan in force is not that of its state."""
        self._changed.set()

    async def run(self) -> None:
        """Plan after every change and at the end of every lease, as time passes; until cancelled."""
        while True:
            lease_end_s = self._registry.next_lease_end_s
            timeout_s = None if lease_end_s is None else max(0.0, lease_end_s - self._clock.now_s())
            with suppress(TimeoutError):
                await asyncio.wait_for(self._changed.wait(), timeout_s)
            try:
                await self.settle()
            except SouthboundError:
                _LOG.exception("the plan is not in force everywhere; trying again")
                await asyncio.sleep(_RETRY_S)

    async def settle(self) -> None:
        """End leases, plan if anything changed, and return when the Plan of the registry's state is in force.

        Raises SouthboundError where a switch refuses its part of the Plan; the Plan before it stays in force.
        """
        async with self._planning:
            if self._registry.expire(self._clock.now_s()):
                self.mark_changed()
            if not self._changed.is_set():
                return
            self._changed.clear()
            try:
                await self._plan()
            except BaseException:
                self.mark_changed()
                raise

    async def _plan(self) -> None:
        previous = self.decision
        snapshot = self._snapshots.take(self._clock.now_s(), previous.plan if previous else None)
        # In a thread of its own, so that heartbeats are answered meanwhile.
        plan = await asyncio.to_thread(decide, self._policy, snapshot)
        rules = flow_rules(plan, snapshot, self._routing)
        await self._southbound.write(rules)
        self.decision = Decision(previous.number + 1 if previous else 1, snapshot, plan, rules)
        await self._board.publish(directives_of(self.decision))
