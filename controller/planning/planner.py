"""The planning loop: it turns changes of the registry into a Plan, and the Plan into rules and directives.

A link that goes down is handled first: the planner withdraws the rules that use it, and then makes a new Plan.
"""

import asyncio
import logging
from contextlib import suppress
from dataclasses import replace

from controller.background import in_slices, run_planning
from controller.links.link_health import LinkHealth
from controller.links.link_log import change_messages
from controller.planning.contained_policy import ContainedPolicy
from controller.planning.context import PlannerContext
from controller.planning.decision import Decision, Draft
from controller.planning.decision_pipeline import DecisionPipeline
from controller.planning.directives import directives_of
from controller.planning.failover_rules import without_dead_paths
from controller.registry.attendance import Attendance
from controller.registry.errors import CommitError
from controller.rules.flow_rules import steered_flows
from controller.southbound.southbound import SouthboundError
from policies.enforcement import Cadence
from policies.flows import FlowKey
from policies.policy import decide
from policies.snapshot import Snapshot
from topologies.routing import Routing

_LOG = logging.getLogger(__name__)

_RETRY_S = 1.0
_GATHER_S = 0.005
"""How long the planner waits for further changes: a job's flow groups follow the job at once."""
_TICK_S = 0.005
"""A timer that has ended may wait for calls, which may renew the lease that it is about."""
_ENDED_AT_ONCE = 100
_PORTS_AT_ONCE = 2_000
"""Giving back this many source ports takes one or two milliseconds."""
_LONG_S = 0.2
"""After a Plan that took longer than this, wait as long as it took, so that half of the time is left for requests."""
_COMMIT_LIMIT_S = 0.25
"""How long a Plan waits for the database."""


class Planner:
    """Makes one Plan at a time; changes that come meanwhile are planned together with the next one.

    Attributes:
        decision: The decision in force: written to the switches and published to the jobs. None before the first.
        links: The health of links. The planner sends nothing over those that are down.
        policy: The policy, with its failures.

    Example::

        planner = Planner(PlannerContext(registry=registry, ...))
        planner.mark_changed()
        await planner.settle()  # the Plan of the registry's state is in force
    """

    def __init__(self, context: PlannerContext) -> None:
        policy, registry, recorder = context.policy, context.registry, context.recorder
        self.decision: Decision | None = None
        self._registry = registry
        self._snapshots = context.snapshots
        self._routing = context.routing
        self._pipeline = DecisionPipeline(
            # Looked up at each call, so that tests can replace it.
            lambda snapshot: decide(policy, snapshot, pauses_collector=False),
            context.steering,
            context.fabric_hash,
            context.probed,
        )
        self.policy = ContainedPolicy(policy.name, self._pipeline.decide, context.policy_time_limit_s)
        self._southbound = context.southbound
        self._directives = context.directives
        self._clock = context.clock
        self._attendance = context.attendance or Attendance(context.clock)
        self._cadence = context.cadence
        self._probed = context.probed
        self.links = context.links or LinkHealth(context.routing.fabric, None)
        self._recorder = recorder
        self._number, self._last_plan = (0, None) if recorder is None else (recorder.number, recorder.plan)
        self._planning = asyncio.Lock()
        self._writing = asyncio.Lock()
        self._changed = asyncio.Event()
        self._grace_end_s = self._clock.now_s() + (registry.lease_s if context.grace_s is None else context.grace_s)
        self._is_in_grace = True

    @property
    def snapshot(self) -> Snapshot | None:
        """The Snapshot of the decision in force; None before the first."""
        return None if self.decision is None else self.decision.snapshot

    @property
    def recorded_number(self) -> int | None:
        """The number of the last recorded Plan; None where there is no record."""
        return None if self._recorder is None else self._recorder.recorded_number

    @property
    def grace_left_s(self) -> float:
        """For how long rules that were found on switches are still kept."""
        return max(0.0, self._grace_end_s - self._clock.now_s()) if self._is_in_grace else 0.0

    @property
    def next_timer_s(self) -> float | None:
        """When the next timer ends: a lease, the grace period, or the damping of a link. None where none runs."""
        release_s = self.links.next_release_s(self._clock.now_s())
        grace_end_s = self._grace_end_s if self._is_in_grace else None
        timers = (self._registry.next_lease_end_s, grace_end_s, release_s)
        return min((timer for timer in timers if timer is not None), default=None)

    def mark_changed(self) -> None:
        """Have a new Plan made: the state that the one in force was decided on has changed."""
        self._changed.set()

    def mark_groups_changed(self) -> None:
        """Have a new Plan made, if the policy decides whenever an instance of a flow group begins or ends."""
        if self._cadence is Cadence.GROUP_EVENT:
            self.mark_changed()

    async def run(self) -> None:
        """Plan after every change and whenever a timer ends, until cancelled."""
        pause_s = _GATHER_S
        while True:
            timer_s = self.next_timer_s
            timeout_s = None if timer_s is None else max(_TICK_S, timer_s - self._clock.now_s())
            with suppress(TimeoutError):
                async with asyncio.timeout(timeout_s):
                    await self._changed.wait()
                    await asyncio.sleep(pause_s)
            start_s = asyncio.get_running_loop().time()
            try:
                await self.settle()
            except SouthboundError as error:
                _LOG.error("the plan is not in force everywhere; trying again: %s", error)
                await asyncio.sleep(_RETRY_S)
            except CommitError as error:
                _LOG.warning("jobs whose leases have ended stay for now: %s", error)
                with suppress(TimeoutError):
                    async with asyncio.timeout(_RETRY_S):
                        await self._changed.wait()
            except ValueError:
                _LOG.exception("no plan can be made; the one before stays in force")
                await asyncio.sleep(_RETRY_S)
            taken_s = asyncio.get_running_loop().time() - start_s
            pause_s = taken_s if taken_s > _LONG_S else _GATHER_S

    async def leave_dead_links(self) -> None:
        """Withdraw the rules that use dead links, and route around these; a new Plan is to follow.

        Links that have come back are not used before that Plan. Raises SouthboundError where a switch refuses.
        """
        dead = self.links.dead_links(self._clock.now_s())
        if dead != self._routing.dead:
            self.mark_changed()
        if dead <= self._routing.dead:
            return
        async with self._writing:
            self._reroute(self._routing.without(self._routing.dead | dead))
            if self.decision is not None:
                self.decision = replace(self.decision, rules=without_dead_paths(self.decision, self._routing.dead))
            await self._southbound.reroute(self.decision.switch_rules if self.decision else {}, self._routing)

    async def settle(self) -> None:
        """Leave dead links, end leases, and plan if anything has changed; the current state's Plan is then in force.

        Where the policy makes no Plan, the one before stays in force until something changes again. A change that the
        database commits late is planned once it is committed.

        Raises:
            SouthboundError: A switch refuses its part of the Plan.
            CommitError: The end of leases cannot be committed.
        """
        await self.leave_dead_links()
        async with self._planning:
            not_committed: CommitError | None = None
            if await self._end_leases():
                try:
                    if await self._commit_in_time():
                        self.mark_changed()
                except CommitError as error:
                    not_committed = error  # these jobs stay for now; other changes are planned
            if self._changed.is_set():
                self._changed.clear()
                try:
                    await in_slices(self._registry.releasing(), _PORTS_AT_ONCE)
                    await self._plan()
                except BaseException:
                    self.mark_changed()
                    raise
            if self._is_in_grace and self._clock.now_s() >= self._grace_end_s:
                await self._southbound.forget_found()
                self._is_in_grace = False
            if not_committed is not None:
                raise not_committed

    async def _end_leases(self) -> bool:
        """End the leases that no call in progress can renew any more; returns whether any has ended."""
        served_until_s, are_any = self._attendance.served_until_s(), False
        while self._registry.expire(served_until_s, _ENDED_AT_ONCE):
            are_any = True
            await asyncio.sleep(0)
        return are_any

    async def _commit_in_time(self) -> bool:
        """Commit changes; returns False where that takes too long for this Plan, and marks a change when it is done.

        Raises CommitError.
        """
        committing = asyncio.ensure_future(self._registry.commit())
        try:
            await asyncio.wait((committing,), timeout=_COMMIT_LIMIT_S)
        finally:
            if not committing.done():
                committing.add_done_callback(self._on_late_commit)
        if committing.done():
            committing.result()
        return committing.done()

    def _on_late_commit(self, committing: "asyncio.Future[None]") -> None:
        if not committing.cancelled() and committing.exception() is None:
            self.mark_changed()

    async def _commit_ports(self) -> bool:
        try:
            return await self._commit_in_time()
        except CommitError as error:
            _LOG.warning("source ports stay as they are: %s", error)
            return False

    async def flush_record(self) -> None:
        """Wait until the Plan in force is recorded, or could not be."""
        if self._recorder is not None:
            await self._recorder.flush()

    async def _plan(self) -> None:
        """Make the next Decision and carry it out; do nothing where the policy makes no Plan."""
        number, now_s = self._number + 1, self._clock.now_s()
        routing = self._routing.without(self.links.dead_links(now_s))
        # Each step runs in a thread that leaves the processor to others, so that calls are answered meanwhile.
        snapshot = await run_planning(self._snapshots.take, now_s, self._last_plan, routing)
        decided = await self.policy.decide(snapshot)
        if decided is None:
            return
        draft = await run_planning(self._pipeline.draft, snapshot, decided, routing)
        changed = await self._change_source_ports(draft)
        decision = await run_planning(self._pipeline.finish, number, draft, changed, routing)
        if self._recorder is not None:
            self._recorder.begin_plan(number)
        async with self._writing:
            decision = self.decision = await self._write(decision, routing)
        self._number, self._last_plan = number, decided
        try:
            if self._probed is not None and self._probed.follows_rules:
                self._probed.set_steered(await run_planning(steered_flows, decision.rules))
            await self._directives.publish(await run_planning(directives_of, decision))
        finally:
            # Last: encoding the record takes time from what the jobs wait for.
            if self._recorder is not None:
                self._recorder.record(number, snapshot, decided)

    async def _change_source_ports(self, draft: Draft) -> frozenset[FlowKey]:
        """Change the source ports that a draft asks for; returns the flows that have theirs now."""
        if not draft.port_changes:
            return frozenset()
        changed = frozenset(self._registry.change_source_ports(draft.port_changes))
        return changed if changed and await self._commit_ports() else frozenset()

    async def _write(self, decision: Decision, routing: Routing) -> Decision:
        """Write a decision to the switches, without links that died since it was begun; returns what was written."""
        died = self.links.dead_links(self._clock.now_s()) - routing.dead
        if died:
            routing = routing.without(routing.dead | died)
            decision = replace(decision, rules=without_dead_paths(decision, died))
        if routing.dead == self._routing.dead:
            await self._southbound.write(decision.switch_rules)
        else:
            self._reroute(routing)
            await self._southbound.reroute(decision.switch_rules, routing)
        return decision

    def _reroute(self, routing: Routing) -> None:
        """Use this routing from now on, and log the links that are down or up again."""
        dead_cables = self.links.dead_cables(self._clock.now_s())
        for line in change_messages(routing.fabric, self._routing.dead, routing.dead, dead_cables):
            _LOG.warning("%s", line)
        self._routing = routing
        if self._probed is not None:
            self._probed.set_routing(routing)
