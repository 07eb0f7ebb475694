"""The planner: it turns changes of the registry into a Plan, and the Plan into rules and directives.

A link that goes down is handled first: the planner withdraws the rules that use it, and then makes a new Plan.
"""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import replace

from controller.background import run_planning
from controller.links.link_health import LinkHealth
from controller.metrics import PLANNING, PLANS
from controller.notice import Notice
from controller.planning.contained_policy import ContainedPolicy
from controller.planning.context import PlannerContext
from controller.planning.decision import Decision
from controller.planning.decision_pipeline import DecisionPipeline
from controller.planning.decision_writer import DecisionWriter
from controller.planning.directives import directives_of
from controller.planning.grace import Grace
from controller.planning.interventions import Interventions
from controller.planning.live_routing import LiveRouting
from controller.planning.plan_log import PlanLog
from controller.planning.planning_loop import PlanningLoop
from controller.planning.registry_changes import RegistryChanges
from controller.planning.retry import Retry
from controller.registry.attendance import Attendance
from controller.registry.errors import CommitError
from policies.enforcement import Cadence, Enforcement
from policies.plan import Plan
from policies.policy import Policy, decide
from policies.snapshot import Snapshot
from topologies.fabric_match import FabricMatch
from topologies.routing import Routing


class Planner:
    """Makes one Plan at a time; changes that come meanwhile are planned together with the next one.

    Attributes:
        settled: Tells when ``is_settled`` may have come true.
        links: The health of links. The planner sends nothing over those that are down.
        policy: The policy, with its failures.
        interventions: What operators have decided by hand. While planning is paused, no Plan is made.

    Example::

        planner = Planner(PlannerContext(registry=registry, ...))
        planner.mark_changed()
        await planner.settle()  # the Plan of the registry's state is in force
    """

    def __init__(self, context: PlannerContext) -> None:
        self.settled = Notice()
        self._registry = context.registry
        self._snapshots = context.snapshots
        policy = context.policy
        self._pipeline = DecisionPipeline(_deciding(policy), context.steering, context.fabric_hash, context.probed)
        self.policy = ContainedPolicy(policy.name, self._pipeline.decide, context.policy_time_limit_s)
        self._southbound = context.southbound
        self._directives = context.directives
        self._clock = context.clock
        self._cadence = context.cadence
        self.links = context.links or LinkHealth(context.routing.fabric, None)
        self._live = LiveRouting(context.routing, self.links, context.clock, context.probed)
        self._writer = DecisionWriter(context.southbound, self._live, context.fabric_hash)
        attendance = context.attendance or Attendance(context.clock)
        self._registry_changes = RegistryChanges(context.registry, attendance, self.mark_changed)
        self.interventions = context.interventions or Interventions(context.clock)
        self._recorder = recorder = context.recorder
        self._number, self._last_plan = (0, None) if recorder is None else (recorder.number, recorder.plan)
        self._planning = asyncio.Lock()
        self._carrying_out = asyncio.Lock()
        self._changed = asyncio.Event()
        self._grace = Grace(context.clock, context.registry.lease_s if context.grace_s is None else context.grace_s)
        self._retry = Retry(context.clock)
        self._plan_log = PlanLog()
        self._loop = PlanningLoop(self._settle_and_tell, lambda: self.next_timer_s, self._changed, context.clock)

    @property
    def decision(self) -> Decision | None:
        """The decision in force: written to the switches and published to the jobs. None before the first."""
        return self._writer.decision

    @property
    def snapshot(self) -> Snapshot | None:
        """The Snapshot of the decision in force; None before the first."""
        return None if self.decision is None else self.decision.snapshot

    @property
    def routing(self) -> Routing:
        """The routing around dead links that is on the switches, or is being written to them."""
        return self._live.now

    @property
    def is_writing(self) -> bool:
        """Whether something is being written to the switches."""
        return self._writer.is_writing

    @property
    def num_levels(self) -> int:
        """The number of levels that Plans may use."""
        return self._snapshots.num_levels

    @property
    def is_settled(self) -> bool:
        """Whether the Plan in force is that of all changes so far."""
        return not (self._changed.is_set() or self._planning.locked() or self.is_writing)

    @property
    def recorded_number(self) -> int | None:
        """The number of the last recorded Plan; None where there is no record."""
        return None if self._recorder is None else self._recorder.recorded_number

    @property
    def grace_left_s(self) -> float:
        """For how long rules that were found on switches are still kept."""
        return self._grace.left_s

    @property
    def next_timer_s(self) -> float | None:
        """When the next timer ends: a lease, the grace period, the damping of a link, a pin, the pause of a retry.

        None where none runs.
        """
        timers = [self._registry.next_lease_end_s, self.links.next_release_s(self._clock.now_s())]
        if self.interventions.pause is None:
            timers += [self._grace.end_s, self.interventions.next_expiry_s, self._retry.due_s]
        return min((timer for timer in timers if timer is not None), default=None)

    def mark_changed(self) -> None:
        """Have a new Plan made: the state that the one in force was decided on has changed."""
        self._changed.set()

    def use_routing(self, routing: Routing) -> None:
        """Plan with this routing of the whole fabric from now on: it has been found on the switches."""
        self._live.use_found(routing)
        self.mark_changed()

    def mark_groups_changed(self) -> None:
        """Have a new Plan made, if the policy decides whenever an instance of a flow group begins or ends."""
        if self._cadence is Cadence.GROUP_EVENT:
            self.mark_changed()

    @asynccontextmanager
    async def between_plans(self) -> AsyncIterator[None]:
        """Make no Plan and write nothing while the context lasts; it begins once what is being written is written."""
        try:
            async with self._planning, self._writer.nothing_written():
                yield
        finally:
            self.settled.tell()

    def use_policy(self, policy: Policy, time_limit_s: float | None) -> None:
        """Decide by this policy from the next Plan on. To be called between Plans."""
        self._cadence = policy.rate_control(Enforcement.LEVELS).cadence
        self._pipeline = replace(self._pipeline, policy=_deciding(policy))
        self.policy = ContainedPolicy(policy.name, self._pipeline.decide, time_limit_s)

    def take_over(self, before: "Planner", match: FabricMatch) -> None:
        """Go on with the number, the grace and the dead links of a planner on another fabric, which plans no longer.

        Switches are taken to be routed as that planner has left them, and over no new cable. All is decided anew.
        """
        self._number, self._last_plan = before._number, None
        self._grace = before._grace
        self._live.take_over(before._live, match)
        self._writer.take_over(before._writer, match)
        self._plan_log = before._plan_log
        self.mark_changed()

    async def run(self) -> None:
        """Plan after every change and whenever a timer ends, until cancelled."""
        await self._loop.run()

    async def _settle_and_tell(self) -> None:
        try:
            await self.settle()
        finally:
            self.settled.tell()

    async def leave_dead_links(self) -> None:
        """Withdraw the rules that use dead links, and route around these; a new Plan is to follow.

        Links that have come back are not used before that Plan. Drained ones that the failure makes the last way are
        used at once. Raises SouthboundError where a switch refuses.
        """
        now_s = self._clock.now_s()
        failed, routing = self.links.failed_links(now_s), self.routing
        if self._live.wanted(now_s) is not routing:
            self.mark_changed()
        if not failed <= routing.dead - routing.drained:
            await self._writer.leave_dead_links(failed)

    async def begin_released(self) -> None:
        """Have switches hold base routing alone where all rules were withdrawn before the start; see ``release``."""
        if (pause := self.interventions.pause) is not None and pause.is_released:
            await self.release()

    async def begin_drained(self) -> None:
        """Have switches routed without the links that were drained before the start; none has been written to yet."""
        if (routing := self._live.wanted(self._clock.now_s())) is not self.routing:
            await self._writer.route_without(routing)

    async def carried_out(self) -> None:
        """Wait until no Plan is being carried out; while planning is paused, none will be."""
        async with self._carrying_out:
            pass

    async def release(self) -> None:
        """Withdraw all rules and levels, while planning is paused: base routing stays, and jobs are told level 0.

        Switches that are away do the same once they are back. Raises SouthboundError where one refuses.
        """
        async with self._carrying_out:
            try:
                await self._writer.release()
            finally:
                await self._publish()

    async def settle(self) -> None:
        """Leave dead links, end leases, and plan if anything has changed; the current state's Plan is then in force.

        Where the policy makes no Plan, the one before stays in force until something changes again, or for a pause.
        While planning is paused it stays too. A change that the database commits late is planned once it is committed.

        Raises:
            SouthboundError: A switch refuses its part of the Plan.
            CommitError: The end of leases cannot be committed.
        """
        await self.leave_dead_links()
        async with self._planning:
            not_committed: CommitError | None = None
            try:
                await self._registry_changes.end_leases()
            except CommitError as error:
                not_committed = error  # these jobs stay for now; other changes are planned
            if self.interventions.expire() or (self._retry.is_due and self.interventions.pause is None):
                self.mark_changed()
            if self._changed.is_set():
                self._changed.clear()
                try:
                    await self._plan()
                except BaseException:
                    self.mark_changed()
                    raise
            if self._grace.is_due and self.interventions.pause is None:
                await self._southbound.forget_found()
                self._grace.end()
            if not_committed is not None:
                raise not_committed

    async def flush_record(self) -> None:
        """Wait until the Plan in force is recorded, or could not be."""
        if self._recorder is not None:
            await self._recorder.flush()

    async def _plan(self) -> None:
        """Make the next Decision and carry it out; do nothing where the policy makes no Plan.

        While planning is paused, rules of jobs that leave stay, and so do their ports. Each step runs in a thread that
        leaves the processor to others, so that calls are answered meanwhile.
        """
        if self.interventions.pause is not None:
            await self._writer.follow_found_routing()
            return
        await self._registry_changes.free_ports()
        number, now_s = self._number + 1, self._clock.now_s()
        routing = self._live.wanted(now_s)
        await self._live.find_probed_paths(routing)
        with PLANNING.labels("snapshot").time():
            snapshot = await run_planning(self._take_snapshot, now_s, routing)
        with PLANNING.labels("decide").time():
            decided = await self.policy.decide(snapshot)
        if decided is None:
            self._retry.fail()
            PLANS.labels("failed").inc()
            await self._writer.follow_found_routing()
            return
        self._retry.succeed()
        async with self._carrying_out:
            # Planning may have been paused while the policy decided: its resumption has this planned.
            if self.interventions.pause is None:
                await self._carry_out(number, snapshot, decided, routing)

    def _take_snapshot(self, now_s: float, routing: Routing) -> Snapshot:
        pins = self.interventions.pins_on(routing.fabric)
        return replace(self._snapshots.take(now_s, self._last_plan, routing), pins=pins)

    async def _carry_out(self, number: int, snapshot: Snapshot, decided: Plan, routing: Routing) -> None:
        """Have a Plan in force: change source ports, write rules, tell the jobs and record it."""
        with PLANNING.labels("draft").time():
            draft = await run_planning(self._pipeline.draft, snapshot, decided, routing)
            changed = await self._registry_changes.change_source_ports(draft.port_changes)
            decision = await run_planning(self._pipeline.finish, number, draft, changed, routing)
        if self._recorder is not None:
            self._recorder.begin_plan(number)
        decision = await self._writer.write(decision, routing)
        PLANS.labels("made").inc()
        self._number, self._last_plan = number, decided
        try:
            await self._publish()
        finally:
            # Last: encoding the record takes time from what the jobs wait for.
            if self._recorder is not None:
                self._recorder.record(number, snapshot, decided)
        await self._plan_log.tell(decision)

    async def _publish(self) -> None:
        """Tell the jobs, and those that probe, of the decision in force."""
        if (decision := self.decision) is not None:
            await self._live.tell_probes_of_rules(decision.rules)
            await self._directives.publish(await run_planning(directives_of, decision))


def _deciding(policy: Policy) -> Callable[[Snapshot], Plan]:
    # Looked up at each call, so that tests can replace it.
    return lambda snapshot: decide(policy, snapshot, pauses_collector=False)
