"""Drain switches, cables and hosts: keep what is drained, and say when it is safe to work on it."""

import asyncio
import logging
from collections.abc import AsyncIterator, Iterable, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from typing import Protocol

from controller.background import run_planning
from controller.clock import Clock
from controller.errors import StoreError
from controller.events import BurstLog, EventKind
from controller.links.cable_words import port_words
from controller.links.cut_off import check_drain
from controller.links.drain_targets import DrainTargets
from controller.links.drains import Drain, DrainTarget, UnknownDrainError
from controller.links.lasting_routes import check_lasting_routes
from controller.links.link_health import DrainedCables, links_of
from controller.links.link_log import listed
from controller.links.quiet_links import QuietLinks
from controller.planning.planner import Planner
from controller.registry.jobs import RegisteredJob
from controller.registry.registry import Registry
from controller.southbound.southbound import Southbound, SwitchCondition
from topologies.fabric import Fabric

_LOG = logging.getLogger(__name__)

QUIET_S = 1.0
"""A link is empty once no packet has left by it for so long."""


class DrainKeeper(Protocol):
    """Keeps drains across restarts. Its methods raise StoreError."""

    async def keep_drain(self, drain: Drain) -> None:
        """Keep a drain, in the place of another one of the same target."""

    async def forget_drain(self, target: DrainTarget) -> None:
        """Forget the drain of a target."""


@dataclass(frozen=True, slots=True)
class DrainState:
    """A drain, and what keeps it from being safe: reasons for operators, and ``jobs`` that use it.

    It is safe to work on the target where ``waits_for`` is empty. ``quiet_s`` is how long no packet has left by any of
    its links; None: not known, as for links of ordinary switches.
    """

    drain: Drain
    waits_for: tuple[str, ...]
    jobs: tuple[str, ...]
    quiet_s: float | None


class Draining:
    """The drains of one controller, in the order in which they were asked for.

    Args:
        planner: Moves flows.
        registry: The jobs, which may use the NICs of what is drained.
        southbound: The switches.
        clock: The time.
        quiet_links: When packets last left by links; None: nobody counts them.
        stored: The drains of the controller before.
        keeper: Keeps drains; None: they end with the process.
        aside: Cables that are left alone besides; see ``set_aside``.
    """

    def __init__(
        self,
        planner: Planner,
        registry: Registry,
        southbound: Southbound,
        clock: Clock,
        quiet_links: QuietLinks | None = None,
        stored: Iterable[Drain] = (),
        keeper: DrainKeeper | None = None,
        aside: frozenset[int] = frozenset(),
    ) -> None:
        self._planner = planner
        self._registry = registry
        self._southbound = southbound
        self._clock = clock
        self._quiet_links = quiet_links
        self._keeper = keeper
        self._fabric: Fabric = planner.routing.fabric
        self._aside = aside
        self.targets = DrainTargets(self._fabric)
        self._drains: dict[DrainTarget, Drain] = {}
        self._changing = asyncio.Lock()
        self._is_over = False
        self._log = BurstLog(_LOG)
        self._set({drain.target: drain for drain in stored})

    @property
    def drains(self) -> tuple[Drain, ...]:
        """What is drained."""
        return tuple(self._drains.values())

    async def drain(self, target: DrainTarget, by: str, *, is_forced: bool) -> bool:
        """Drain a target; returns False where it was drained already.

        Raises:
            CutOffError: It would cut off hosts, or switches go on to send there; and it is not forced.
            StoreError: It cannot be kept.
        """
        async with self._changing:
            self._require_in_force()
            known = self._drains.get(target)
            if known is not None and (known.is_forced or not is_forced):
                return False
            now_s = self._clock.now_s()
            if not is_forced:
                failed = {link // 2 for link in self._planner.links.failed_links(now_s)}
                drains = self.drains
                check_drain(self.targets, target, drains, failed)
                whole = self._planner.routing.whole
                working = whole.without(links_of(failed))
                await run_planning(check_lasting_routes, working, self.targets, target, drains)
            drain = Drain(target, is_forced, now_s, by) if known is None else replace(known, is_forced=True, by=by)
            if self._keeper is not None:
                await self._keeper.keep_drain(drain)
            self._set(self._drains | {target: drain})
            self._planner.mark_changed()
            words = "%s: drained%s%s", target, f" by {by}" if by else "", ", by force" if is_forced else ""
            self._log.tell(EventKind.DRAINED, *words, target=str(target), by=by)
            return True

    async def undrain(self, target: DrainTarget) -> None:
        """Use a target again.

        Raises:
            UnknownDrainError: It is not drained.
            StoreError: That cannot be kept.
        """
        async with self._changing:
            self._require_in_force()
            if target not in self._drains:
                drained = listed(map(str, self._drains)) or "nothing"
                raise UnknownDrainError(f"{target} is not drained; drained is {drained}")
            if self._keeper is not None:
                await self._keeper.forget_drain(target)
            self._set({each: drain for each, drain in self._drains.items() if each != target})
            self._planner.mark_changed()
            self._log.tell(EventKind.UNDRAINED, "%s: no longer drained", target, target=str(target))

    @property
    def aside(self) -> frozenset[int]:
        """The cables that are left alone, whatever operators have drained."""
        return self._aside

    def set_aside(self, cables: frozenset[int]) -> None:
        """Leave these cables alone, and no others that nobody has drained: they come or go with a new fabric."""
        self._aside = cables
        self._set(self._drains)
        self._planner.mark_changed()

    @asynccontextmanager
    async def unchanged(self) -> AsyncIterator[tuple[Drain, ...]]:
        """Have nobody drain or undrain anything while the context lasts; it is what is drained."""
        async with self._changing:
            yield self.drains

    def take_over(self, drains: Iterable[Drain]) -> None:
        """Go on with what another object had drained, which does so no longer."""
        self._set({drain.target: drain for drain in drains})

    async def keep(self, refitted: Mapping[Drain, Drain | None]) -> None:
        """Store what has become of the drains of another fabric; None: they have ended. Raises StoreError."""
        for before, after in refitted.items() if self._keeper is not None else ():
            assert self._keeper is not None
            if after is None or after.target != before.target:
                await self._keeper.forget_drain(before.target)
            if after is not None and after != before:
                await self._keeper.keep_drain(after)

    def end(self) -> None:
        """Drain and undrain nothing any longer: another object does, on a new fabric. To be called in ``unchanged``."""
        self._is_over = True

    async def states(self) -> list[DrainState]:
        """What is drained, and how far it is."""
        drains = self.drains
        links = {drain.target: self._links_out(drain.target) for drain in drains}
        # Before the counters, which may take a while: what is written meanwhile does not count as done.
        reasons = {drain.target: tuple(self._reasons(drain)) for drain in drains}
        quiet_s = {}
        if self._quiet_links is not None and drains:
            counted = filter(self._is_counted, frozenset().union(*links.values()))
            quiet_s = await self._quiet_links.read(frozenset(counted), self._clock.now_s())
        return [self._state(drain, reasons[drain.target], sorted(links[drain.target]), quiet_s) for drain in drains]

    def _state(
        self, drain: Drain, reasons: Sequence[str], links: Sequence[int], quiet_s: dict[int, float | None]
    ) -> DrainState:
        users = [job.request.name for job in self._users(drain.target)]
        jobs = tuple(dict.fromkeys((*users, *self._cut_off(drain.target))))
        waits_for = list(reasons)
        if users and not drain.is_forced:
            waits_for.append(f"{'job' if len(users) == 1 else 'jobs'} {listed(users)} to end: nothing else leads there")
        known = [quiet for link in links if (quiet := quiet_s.get(link)) is not None]
        if self._quiet_links is not None:
            busy = [self._port(link) for link in links if (quiet_s.get(link) or 0.0) < QUIET_S and link in quiet_s]
            missing = [link for link in links if link not in quiet_s and self._is_counted(link)]
            unread = sorted({self._fabric.links[link].source for link in missing})
            if unread:
                waits_for.append(f"the counters of {listed(unread)}")
            if busy:
                waits_for.append(f"packets to stop leaving by {listed(busy)}")
        is_all_known = links and len(known) == len(links)
        return DrainState(drain, tuple(waits_for), jobs, min(known) if is_all_known else None)

    def _reasons(self, drain: Drain) -> Iterator[str]:
        """What the switches have not done yet."""
        planner, now_s = self._planner, self._clock.now_s()
        if not self.targets.exists(drain.target):
            yield "the topology to have it: it does not"
            return
        alone = self.targets.leave_alone(drain)
        if planner.links.is_needed(alone, now_s):
            yield "other cables: nothing else connects some hosts, so it is in use"
        elif not links_of(alone.cables) <= planner.routing.dead or planner.is_writing:
            yield (
                "a Plan without it"
                if planner.interventions.pause is None
                else "planning, which is paused, to be resumed"
            )
        behind = [
            f"{status.name} ({status.condition})"
            for status in self._southbound.statuses()
            if status.condition is not SwitchCondition.CAUGHT_UP and status.name != drain.target.name
        ]
        if behind:
            yield f"switches to take their rules: {listed(behind)}"

    def _users(self, target: DrainTarget) -> Iterator[RegisteredJob]:
        """The jobs with flows at NICs of a target; of those that tell no flows, the ones with such a host."""
        cables = self.targets.cables(target)
        nics = {nic for nic in self._fabric.nic_by_address.values() if nic.link // 2 in cables}
        hosts = {nic.host for nic in nics}
        for job in self._registry.jobs if nics else ():
            if hosts.isdisjoint(job.request.hosts):
                continue
            flows = (flow for group in job.flow_groups for flow in group.flows)
            if job.request.profile is None or any(flow.source in nics or flow.destination in nics for flow in flows):
                yield job

    def _cut_off(self, target: DrainTarget) -> Iterator[str]:
        """The jobs with flows that have no path left, and had one by a target."""
        links = links_of(self.targets.cables(target))
        for job in () if self._planner.decision is None else self._planner.decision.snapshot.jobs:
            flows = (flow for flow in job.flows if flow.is_cut_off)
            if any(not links.isdisjoint(path) for flow in flows for path in flow.candidates):
                yield job.name

    def _links_out(self, target: DrainTarget) -> frozenset[int]:
        """The links of a target by which switches send, without those that are down."""
        links = links_of(self.targets.cables(target)) - self._planner.links.links_down
        return frozenset(link for link in links if self._fabric.links[link].source in self._fabric.switch_index)

    def _is_counted(self, link: int) -> bool:
        """Whether the controller reads the counters of a link's switch: it does not of an ordinary one."""
        return self._fabric.links[link].source not in self._fabric.ordinary_switches

    def _port(self, link: int) -> str:
        ends = self._fabric.links[link]
        return port_words(self._fabric, (ends.source, ends.source_port))

    def _require_in_force(self) -> None:
        if self._is_over:
            raise StoreError("the fabric is another one by now: ask again")

    def _set(self, drains: dict[DrainTarget, Drain]) -> None:
        self._drains = drains
        alone = [self.targets.leave_alone(drain) for drain in drains.values()]
        aside = [DrainedCables(self._aside, is_forced=True)] if self._aside else []
        self._planner.links.set_drains((*alone, *aside))
