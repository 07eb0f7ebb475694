"""Session of one job: the state the job wants, kept up to date at whichever controller is active.

Calls of the job only change the wanted state and return. ``run`` brings the controller up to date, again after each
loss.
"""

import asyncio
import logging
import time
from collections.abc import Awaitable, Mapping, Sequence
from dataclasses import replace
from typing import Protocol

from hostlib.connection import Connection
from hostlib.errors import ControllerError, RefusalReason, RefusedError, UnreachableError
from hostlib.reachability import Reachability
from hostlib.task_graph import TaskGraph, check_sends
from hostlib.types import Directives, FiveTuple, FlowGroup, GroupInstance, Job, Profile, Sent

_LOG = logging.getLogger(__name__)

_FIRST_RETRY_S = 0.1
_LAST_RETRY_S = 5.0
_HEARTBEATS_PER_LEASE = 3


class Clock(Protocol):
    """Time by which leases are renewed, in seconds since an arbitrary moment."""

    def now_s(self) -> float:
        """Return the current time."""

    async def wait_until(self, time_s: float) -> None:
        """Return once ``time_s`` has come."""


class WallClock:
    """Monotonic time, unaffected by changes of the date."""

    def now_s(self) -> float:
        """Return the current time."""
        return time.monotonic()

    async def wait_until(self, time_s: float) -> None:
        """Return once ``time_s`` has come."""
        await asyncio.sleep(max(0.0, time_s - time.monotonic()))


class JobSession:
    """The wanted state of a job; ``assignments`` and ``newest`` hold the controller's answers.

    ``refusal`` is why the job is not registered: the controller refuses it, or the session itself has failed.
    """

    def __init__(self, job: Job, clock: Clock, reachability: Reachability) -> None:
        self.job = job
        self.assignments: dict[str, tuple[FiveTuple, ...]] = {}
        self.newest: Directives | None = None
        self.refusal: RefusedError | None = None
        self.is_over = False
        self._clock = clock
        self._reachability = reachability
        self._failure = ""
        self._arrived_s = clock.now_s()
        self._groups: dict[str, FlowGroup] = {}
        self._instances: dict[str, GroupInstance] = {}
        self._sent: dict[str, Sent] = {}
        self._graph: TaskGraph | None = None
        self._registered: set[str] = set()
        self._known_profile: Profile | None = None
        self._known_graph: TaskGraph | None = None
        self._is_known = False
        self._period_s = 0.0
        self._heartbeat_due_s = 0.0
        self._wanted = asyncio.Event()
        self._changed = asyncio.Condition()

    @property
    def is_acknowledged(self) -> bool:
        """Whether the controller has acknowledged the wanted state and no heartbeat is due."""
        return (
            self._is_known
            and self._known_profile == self.job.profile
            and self._known_graph is self._graph
            and not self._instances
            and self._registered == self._groups.keys()
            and self._clock.now_s() < self._heartbeat_due_s
        )

    def add_flow_groups(self, flow_groups: Sequence[FlowGroup], task_graph: TaskGraph | None = None) -> None:
        """Add flow groups, and the task graph that sends all groups; new ones without it drop the one before.

        Raises ValueError if one is registered with other flows, or the graph does not send all once.
        """
        groups = dict(self._groups)
        for group in flow_groups:
            if groups.setdefault(group.name, group) != group:
                raise ValueError(f"job {self.job.name!r} has another flow group {group.name!r}")
        if task_graph is not None:
            check_sends(task_graph, tuple(groups.values()))
        if task_graph is not None or len(groups) > len(self._groups):
            self._graph = task_graph
        self._groups = groups
        self._wanted.set()

    def note_instances(self, instances: Mapping[str, GroupInstance]) -> None:
        """Record instances of these groups. Raises ValueError for an unknown group."""
        if unknown := [name for name in instances if name not in self._groups]:
            raise ValueError(f"job {self.job.name!r} has no flow group {unknown[0]!r}")
        self._sent |= {name: instance.sent for name, instance in instances.items() if instance.sent is not None}
        # Keep only the newest; instances that an absent controller missed are over. What is sent is always told, for
        # the controller may be another one than before.
        self._instances |= {name: replace(each, sent=self._sent.get(name)) for name, each in instances.items()}
        self._wanted.set()

    def report_profile(self, profile: Profile, task_graph: TaskGraph | None = None) -> None:
        """Replace the profile, and the task graph if there is another. Raises ValueError if that lacks flows."""
        if task_graph is not None:
            check_sends(task_graph, tuple(self._groups.values()))
            self._graph = task_graph
        self.job = replace(self.job, profile=profile)
        self._wanted.set()

    async def next_directives(self, seen: Directives | None) -> Directives | None:
        """Wait for directives other than ``seen`` and return the newest; None once the session is over."""
        async with self._changed:
            await self._changed.wait_for(lambda: self.is_over or self.newest is not seen)
            return None if self.is_over else self.newest

    async def acknowledged(self) -> None:
        """Return once the wanted state is acknowledged or refused, or the session is over."""
        async with self._changed:
            await self._changed.wait_for(lambda: self.is_acknowledged or self.refusal is not None or self.is_over)

    async def lost(self) -> None:
        """Return once no controller is known to know the job, or the session is over."""
        async with self._changed:
            await self._changed.wait_for(lambda: not self._is_known or self.is_over)

    async def end(self) -> None:
        """End the session: nothing more will arrive."""
        self.is_over = True
        await self._notify()

    async def run(self, connection: Connection) -> None:
        """Keep the controller informed until cancelled."""
        retry_s = _FIRST_RETRY_S
        while True:
            try:
                await self._register(connection)
                retry_s = _FIRST_RETRY_S
                await self._stay_registered(connection)
            except ControllerError as error:
                self._record_error(error)
            except Exception as error:
                self.record_failure(error)
                retry_s = _LAST_RETRY_S
            self._is_known = False
            await self._notify()
            await asyncio.sleep(retry_s)
            # Retry within a lease: a restarted controller keeps rules no longer.
            retry_s = min(2 * retry_s, _LAST_RETRY_S, self._period_s or _LAST_RETRY_S)

    async def _register(self, connection: Connection) -> None:
        """Register everything: a restarted controller may know nothing, and one that knows the job changes nothing."""
        self._registered.clear()
        self._known_graph = None
        self._heartbeat_due_s = self._clock.now_s()
        job = self.job
        age_s = self._clock.now_s() - self._arrived_s
        self._period_s = await connection.register_job(job, age_s) / _HEARTBEATS_PER_LEASE
        self._known_profile = job.profile
        self._reachability.note_answer()
        await self._flush(connection)
        self._heartbeat_due_s = self._clock.now_s() + self._period_s
        self._is_known, self.refusal = True, None
        await self._notify()

    async def _stay_registered(self, connection: Connection) -> None:
        """Report changes and follow the directives until one of the two fails."""
        tasks = {asyncio.create_task(work) for work in (self._report(connection), self._follow(connection))}
        try:
            done, _ = await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
            for task in done:
                task.result()
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)

    async def _report(self, connection: Connection) -> None:
        while True:
            await _first_of(self._wanted.wait(), self._clock.wait_until(self._heartbeat_due_s))
            reported_s = self._clock.now_s()
            if not await self._flush(connection):
                await connection.heartbeat(self.job.name)
            self._heartbeat_due_s = reported_s + self._period_s
            await self._notify()

    async def _flush(self, connection: Connection) -> bool:
        """Report everything not yet acknowledged; return whether that renewed the lease."""
        self._wanted.clear()
        name, profile, graph = self.job.name, self.job.profile, self._graph
        if new := [self._keep_ports(group) for group in self._groups.values() if group.name not in self._registered]:
            self.assignments |= await connection.register_flow_groups(name, new, graph)
            self._registered |= {group.name for group in new}
            self._known_graph = graph
        if profile is not None and (profile != self._known_profile or graph is not self._known_graph):
            await connection.report_profile(name, profile, None if graph is self._known_graph else graph)
            self._known_profile, self._known_graph = profile, graph
        reported = dict(self._instances)
        if reported:
            await connection.start_flow_groups(name, reported)
            # Keep what changed again meanwhile.
            self._instances = {
                group: newest for group, newest in self._instances.items() if reported.get(group) != newest
            }
        return bool(reported)

    def _keep_ports(self, group: FlowGroup) -> FlowGroup:
        """Return the group with the source ports assigned to it before."""
        assigned = self.assignments.get(group.name)
        if assigned is None:
            return group
        directives = self.newest.flows if self.newest is not None else ()
        newest = {flow.flow: flow.source_port for flow in directives if flow.flow_group == group.name}
        ports = [newest.get(number, five_tuple.source_port) for number, five_tuple in enumerate(assigned)]
        flows = [
            flow if flow.five_tuple is not None else replace(flow, held_source_port=port)
            for flow, port in zip(group.flows, ports, strict=True)
        ]
        return replace(group, flows=tuple(flows))

    async def _follow(self, connection: Connection) -> None:
        async for directives in connection.directives(self.job.name):
            self.newest = directives
            await self._notify()

    def record_failure(self, error: BaseException) -> None:
        """Record an error that nobody expected as a refusal, and log it once."""
        failure = f"{type(error).__name__}: {error}"
        if failure != self._failure:
            _LOG.error("job %s: its session failed, and it runs without: %s", self.job.name, failure, exc_info=error)
        self._failure = failure
        self.refusal = RefusedError(RefusalReason.FAILED, f"the host library failed: {failure}")

    def _record_error(self, error: ControllerError) -> None:
        """Record a refusal and log it once. A restarted controller is normal and not logged."""
        if isinstance(error, UnreachableError):
            self._reachability.note_silence(str(error), self._clock.now_s())
            return
        self._reachability.note_answer()
        if isinstance(error, RefusedError) and error.reason is not RefusalReason.UNKNOWN_JOB:
            if self.refusal is None or str(self.refusal) != str(error):
                _LOG.error("job %s: the controller refused it, and it runs without: %s", self.job.name, error)
            self.refusal = error

    async def _notify(self) -> None:
        async with self._changed:
            self._changed.notify_all()


async def _first_of(*events: Awaitable[object]) -> None:
    """Return as soon as one of the awaitables does; raises what it raises."""
    tasks = [asyncio.ensure_future(event) for event in events]
    try:
        done, _ = await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
        for task in done:
            task.result()
    finally:
        for task in tasks:
            task.cancel()
