"""The planning loop: a change of the registry becomes a Plan, the Plan rules on switches and directives to jobs.

Links that die come before it: nothing is led over them any longer, and then a Plan is made.
"""

import asyncio
import logging
from contextlib import suppress
from dataclasses import replace
from typing import Protocol

from controller.clock import Clock
from controller.links.link_health import LinkHealth
from controller.links.link_log import change_messages
from controller.planning.contained_policy import ContainedPolicy
from controller.planning.decision import Decision, directives_of
from controller.planning.decision_pipeline import DecisionPipeline, Draft
from controller.planning.directive_publisher import DirectiveBoard
from controller.planning.failover_rules import without_dead_ways
from controller.planning.snapshots import Snapshots
from controller.registry.registration import NotStoredError
from controller.registry.registry import Registry
from controller.southbound.southbound import Southbound, SouthboundError
from controller.telemetry.probed_paths import ProbedPaths
from policies.enforcement import Cadence
from policies.flows import FlowKey
from policies.plan import Plan
from policies.policy import Policy, decide
from policies.snapshot import Snapshot
from topologies.ecmp import FabricHash
from topologies.routing import Routing
from topologies.steering import Steering

_LOG = logging.getLogger(__name__)

_RETRY_S = 1.0
_GATHER_S = 0.005
"""A job's flow groups come right after the job itself: one Plan is for both."""
_LONG_S = 0.2
"""After a Plan that has taken longer the next one waits as long, so that half of the time is the registrations'."""
_STORED_WITHIN_S = 0.25
"""A Plan does not wait for the database for longer."""


class PlanRecorder(Protocol):
    """Where every Plan is recorded; ``controller.store.recorder`` writes it to the database.

    ``number`` and ``plan`` are those of the last Plan of a former controller, ``recorded_number`` that of the last
    Plan that is recorded by now.
    """

    number: int
    plan: Plan | None
    recorded_number: int

    def begin(self, number: int) -> None:
        """What is written to switches from now on is for this Plan."""

    def record(self, number: int, snapshot: Snapshot, plan: Plan) -> None:
        """A Plan has come into force; it is recorded in the background."""

    async def recorded(self) -> None:
        """Return once all is recorded, or could not be."""


class Planner:
    """Plans once at a time; changes that come meanwhile wait together for the next Plan.

    ``decision`` is what is in force: written to the switches and published to the jobs. None before the first. Until
    ``grace_end_s`` jobs that a former controller knew may still come back, and their rules stay; None: for one lease
    from the start. Nothing is led over the dead ones of ``links``. A ``recorder`` knows the last Plan of a former
    controller, and is told of every Plan.
    """

    def __init__(
        self,
        registry: Registry,
        snapshots: Snapshots,
        routing: Routing,
        policy: Policy,
        steering: Steering,
        southbound: Southbound,
        board: DirectiveBoard,
        clock: Clock,
        fabric_hash: FabricHash = FabricHash.KNOWN,
        cadence: Cadence = Cadence.JOB_EVENT,
        probed: ProbedPaths | None = None,
        links: LinkHealth | None = None,
        grace_end_s: float | None = None,
        recorder: PlanRecorder | None = None,
        policy_time_limit_s: float | None = None,
    ) -> None:
        self.decision: Decision | None = None
        self._registry = registry
        self._snapshots = snapshots
        self._routing = routing
        # Looked up at each call, so that tests can replace it.
        self._pipeline = DecisionPipeline(lambda snapshot: decide(policy, snapshot), steering, fabric_hash, probed)
        self.policy = ContainedPolicy(policy.name, self._pipeline.decide, policy_time_limit_s)
        self._southbound = southbound
        self._board = board
        self._clock = clock
        self._cadence = cadence
        self._probed = probed
        self.links = links or LinkHealth(routing.fabric, None)
        self._recorder = recorder
        self._number, self._last_plan = (0, None) if recorder is None else (recorder.number, recorder.plan)
        self._planning = asyncio.Lock()
        self._writing = asyncio.Lock()
        self._changed = asyncio.Event()
        self._grace_end_s = clock.now_s() + registry.lease_s if grace_end_s is None else grace_end_s
        self._is_in_grace = True

    @property
    def snapshot(self) -> Snapshot | None:
        """What the Plan in force was decided on; None before the first."""
        return None if self.decision is None else self.decision.snapshot

    @property
    def recorded_number(self) -> int | None:
        """The number of the last Plan that is in the record; None where none is kept."""
        return None if self._recorder is None else self._recorder.recorded_number

    @property
    def next_timer_s(self) -> float | None:
        """When there is next something to do without a change; None where nothing waits."""
        release_s = self.links.next_release_s(self._clock.now_s())
        grace_end_s = self._grace_end_s if self._is_in_grace else None
        timers = (self._registry.next_lease_end_s, grace_end_s, release_s)
        return min((timer for timer in timers if timer is not None), default=None)

    def mark_changed(self) -> None:
        """The registry has changed: the Plan in force is not that of its state."""
        self._changed.set()

    def mark_groups_changed(self) -> None:
        """Instances of flow groups have begun or ended, which only policies at the cadence of groups ask for."""
        if self._cadence is Cadence.GROUP_EVENT:
            self.mark_changed()

    async def run(self) -> None:
        """Plan after every change and whenever a timer ends, as time passes; until cancelled."""
        pause_s = _GATHER_S
        while True:
            timer_s = self.next_timer_s
            timeout_s = None if timer_s is None else max(0.0, timer_s - self._clock.now_s())
            with suppress(TimeoutError):
                async with asyncio.timeout(timeout_s):
                    await self._changed.wait()
                    await asyncio.sleep(pause_s)
            start_s = asyncio.get_running_loop().time()
            try:
                await self.settle()
            except SouthboundError:
                _LOG.exception("the plan is not in force everywhere; trying again")
                await asyncio.sleep(_RETRY_S)
            except NotStoredError as error:
                _LOG.warning("jobs whose leases have ended stay for now: %s", error)
                with suppress(TimeoutError):
                    async with asyncio.timeout(_RETRY_S):
                        await self._changed.wait()
            except ValueError:
                _LOG.exception("no plan can be made of this; the one before stays in force")
                await asyncio.sleep(_RETRY_S)
            taken_s = asyncio.get_running_loop().time() - start_s
            pause_s = taken_s if taken_s > _LONG_S else _GATHER_S

    async def leave_dead_links(self) -> None:
        """Take back the rules that lead over links which have died, and route around these; a Plan is to follow.

        What has come back is left alone until that Plan. Raises SouthboundError where a switch refuses.
        """
        dead = self.links.dead_links(self._clock.now_s())
        if dead != self._routing.dead:
            self.mark_changed()
        if dead <= self._routing.dead:
            return
        async with self._writing:
            self._reroute(self._routing.without(self._routing.dead | dead))
            if self.decision is not None:
                self.decision = replace(self.decision, rules=without_dead_ways(self.decision, self._routing.dead))
            await self._southbound.reroute(self.decision.switch_rules if self.decision else {}, self._routing)

    async def settle(self) -> None:
        """Leave dead links, end leases, plan if anything changed; return when the Plan of what there is is in force.

        Where the policy makes no Plan, the one before stays in force until something changes again. What the database
        takes later than a Plan waits is planned with then.

        Raises:
            SouthboundError: A switch refuses its part of the Plan.
            NotStoredError: That leases have ended cannot be stored.
        """
        await self.leave_dead_links()
        async with self._planning:
            not_stored: NotStoredError | None = None
            if self._registry.expire(self._clock.now_s()):
                try:
                    if await self._is_stored():
                        self.mark_changed()
                except NotStoredError as error:
                    not_stored = error  # they stay for now; what else has changed is planned
            if self._changed.is_set():
                self._changed.clear()
                try:
                    await self._plan()
                except BaseException:
                    self.mark_changed()
                    raise
            if self._is_in_grace and self._clock.now_s() >= self._grace_end_s:
                await self._southbound.forget_found()
                self._is_in_grace = False
            if not_stored is not None:
                raise not_stored

    async def _is_stored(self) -> bool:
        """Whether what was changed is stored as soon as a Plan can wait for; another follows where it is later.

        Raises NotStoredError.
        """
        storing = asyncio.ensure_future(self._registry.stored())
        try:
            await asyncio.wait((storing,), timeout=_STORED_WITHIN_S)
        finally:
            if not storing.done():
                storing.add_done_callback(self._note_stored_late)
        if storing.done():
            storing.result()
        return storing.done()

    def _note_stored_late(self, storing: "asyncio.Future[None]") -> None:
        if not storing.cancelled() and storing.exception() is None:
            self.mark_changed()

    async def _are_ports_stored(self) -> bool:
        try:
            return await self._is_stored()
        except NotStoredError as error:
            _LOG.warning("source ports stay as they are: %s", error)
            return False

    async def recorded(self) -> None:
        """Return once the Plan in force is in the record, if one is kept."""
        if self._recorder is not None:
            await self._recorder.recorded()

    async def _plan(self) -> None:
        """Make the next Decision and have it carried out; nothing where the policy makes no Plan."""
        number, now_s = self._number + 1, self._clock.now_s()
        routing = self._routing.without(self.links.dead_links(now_s))
        # In threads of their own, so that heartbeats are answered meanwhile.
        snapshot = await asyncio.to_thread(self._snapshots.take, now_s, self._last_plan, routing)
        decided = await self.policy.decide(snapshot)
        if decided is None:
            return
        draft = await asyncio.to_thread(self._pipeline.draft, snapshot, decided, routing)
        changed = await self._change_source_ports(draft)
        decision = await asyncio.to_thread(self._pipeline.finish, number, draft, changed, routing)
        if self._recorder is not None:
            self._recorder.begin(number)
        async with self._writing:
            decision = self.decision = await self._write(decision, routing)
        self._number, self._last_plan = number, decided
        if self._recorder is not None:
            self._recorder.record(number, snapshot, decided)
        if self._probed is not None:
            self._probed.set_rules(decision.rules)
        await self._board.publish(directives_of(decision))

    async def _change_source_ports(self, draft: Draft) -> frozenset[FlowKey]:
        """Change the source ports that a draft asks for; returns the flows that have theirs now."""
        if not draft.port_changes:
            return frozenset()
        changed = frozenset(self._registry.change_source_ports(draft.port_changes))
        return changed if changed and await self._are_ports_stored() else frozenset()

    async def _write(self, decision: Decision, routing: Routing) -> Decision:
        """Have the switches carry a decision out, but for what has died since it was begun; returns what they do."""
        died = self.links.dead_links(self._clock.now_s()) - routing.dead
        if died:
            routing = routing.without(routing.dead | died)
            decision = replace(decision, rules=without_dead_ways(decision, died))
        if routing.dead == self._routing.dead:
            await self._southbound.write(decision.switch_rules)
        else:
            self._reroute(routing)
            await self._southbound.reroute(decision.switch_rules, routing)
        return decision

    def _reroute(self, routing: Routing) -> None:
        """What follows is for a fabric that routes so."""
        dead_cables = self.links.dead_cables(self._clock.now_s())
        for line in change_messages(routing.fabric, self._routing.dead, routing.dead, dead_cables):
            _LOG.warning("%s", line)
        self._routing = routing
        if self._probed is not None:
            self._probed.set_routing(routing)
