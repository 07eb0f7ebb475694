"""Gathers what the page shows of an active controller, a few rows at a time."""

import asyncio
import logging
from collections.abc import Coroutine, Iterator, Mapping, Sequence
from dataclasses import asdict
from time import thread_time
from typing import Any

import numpy as np

from controller.api.context import ServiceContext
from controller.background import run_planning
from controller.links.cable_words import cable_words
from controller.links.link_health import DeadCable
from controller.planning.decision import Decision
from controller.planning.intervening import Intervening
from controller.telemetry.telemetry import STALE_AFTER_S
from controller.web.page.by_hand import drain_rows, pause_row, pin_rows
from controller.web.page.fabric_map import FabricMap, fabric_map, map_row
from controller.web.page.iteration_times import IterationTimes
from controller.web.page.job_rows import job_row, profile_word, short
from controller.web.page.journal import Journal
from controller.web.page.plan_view import PlanView, plan_view
from topologies.fabric import Fabric
from topologies.printable import printable

_LOG = logging.getLogger(__name__)

_AT_ONCE = 200
"""Rows after which others may use the event loop."""
_PLANS_KEPT = 10
_TEXT_LIMIT = 300
_BY_HAND_EVERY_S = 2.0
_VIEW_SHARE = 0.1
"""The most of a core that views of Plans may take."""
_SAME_S = 2.0
"""Times that are computed from ages differ by less than this while they mean the same."""

_Rows = dict[str, object]


class Gatherer:
    """Writes the state of one active controller to a journal; ``close`` ends what it does in the background.

    Attributes:
        context: The parts of the controller.
        others_s: The time of this thread that others took during the last ``gather``.
    """

    def __init__(self, context: ServiceContext) -> None:
        self.context = context
        self.others_s = 0.0
        self._fabric = context.registry.fabric
        self._map: FabricMap | None = None
        self._names: dict[int, str] = {}
        self._drawn_links: list[int] = []
        """Those of the map's cables, both ways, and their rates."""
        self._rates_bps = np.empty(0)
        self._view: PlanView | None = None
        self._viewed: Decision | None = None
        self._earlier: Decision | None = None
        """The decision of the number that was viewed before."""
        self._plans: _Rows = {}
        self._viewing: asyncio.Task[None] | None = None
        self._hands = Intervening(
            context.planner, context.registry, context.southbound, context.clock, context.profiling
        )
        self._asking: asyncio.Task[None] | None = None
        self._view_due_s = self._by_hand_due_s = 0.0
        self._drains: Mapping[str, object] = {}
        self._pins: Mapping[str, object] = {}
        self._times = IterationTimes()
        self._since_s: dict[str, float] = {}
        self._planned_links: tuple[PlanView | None, _Rows] = (None, {})
        """The rows of cables that are used, by a view."""
        self._job_rows: dict[str, tuple[tuple[object, ...], object]] = {}
        """The row of each job, and what it was made of."""

    def is_for(self, context: ServiceContext | None) -> bool:
        """Whether this is the state of a controller, on the fabric that it has now."""
        return context is self.context and context.registry.fabric is self._fabric

    def close(self) -> None:
        """End what is done in the background."""
        for task in (self._viewing, self._asking):
            if task is not None:
                task.cancel()

    async def gather(self, journal: Journal) -> None:
        """Bring a journal up to date."""
        self.others_s = 0.0
        if self._map is None:
            self._map = await run_planning(fabric_map, self._fabric)
            self._drawn_links = [link for cable in self._map.cables for link in (2 * cable, 2 * cable + 1)]
            self._rates_bps = np.array([self._fabric.links[link].rate_bps for link in self._drawn_links])
            self._names = {cable: cable_words(self._fabric, 2 * cable) for cable in self._map.cables}
            journal.replace("map", {"fabric": map_row(self._fabric, self._map)})
        self._look_in_background()
        journal.replace("controller", {"now": self._controller()})
        journal.replace("switches", self._switches())
        journal.replace("drains", self._drains)
        journal.replace("pins", self._pins)
        journal.replace("plans", self._plans)
        journal.replace("jobs", await self._in_slices(self._jobs()))
        journal.replace("links", await self._links(self._map))
        journal.replace("loads", self._loads(self._map))

    async def _in_slices(self, rows: Iterator[tuple[str, object]]) -> _Rows:
        """Make rows, and let others use the event loop after some of them."""
        made: _Rows = {}
        for key, row in rows:
            made[key] = row
            if len(made) % _AT_ONCE == 0:
                paused_s = thread_time()
                await asyncio.sleep(0)
                self.others_s += thread_time() - paused_s
        return made

    def _look_in_background(self) -> None:
        """View a new Plan, and ask how far drains and pins are, each one at a time and not too often."""
        now_s = asyncio.get_running_loop().time()
        decision = self.context.planner.decision
        if decision is not self._viewed and _is_over(self._viewing) and now_s >= self._view_due_s:
            assert decision is not None
            self._viewing = asyncio.create_task(_logged(self._view_plan(decision)))
        if _is_over(self._asking) and now_s >= self._by_hand_due_s:
            self._by_hand_due_s = now_s + _BY_HAND_EVERY_S
            self._asking = asyncio.create_task(_logged(self._ask_by_hand()))

    async def _view_plan(self, decision: Decision) -> None:
        loop = asyncio.get_running_loop()
        start_s = loop.time()
        # Plans that come quickly one after the other are viewed together. A dead link changes one without a new number.
        if self._viewed is not None and self._viewed.number != decision.number:
            self._earlier = self._viewed
        self._viewed = decision
        self._view, changes = await run_planning(_view_and_changes, decision, self._fabric, self._earlier)
        self._plans = {**self._plans, str(decision.number): changes}
        while len(self._plans) > _PLANS_KEPT:
            del self._plans[next(iter(self._plans))]
        self._view_due_s = loop.time() + (loop.time() - start_s) / _VIEW_SHARE

    async def _ask_by_hand(self) -> None:
        self._pins = pin_rows(self._hands.pin_states())
        self._drains = drain_rows(await self.context.draining.states())

    def _controller(self) -> _Rows:
        context, decision = self.context, self.context.planner.decision
        policy, store, pause = context.planner.policy, context.store, context.planner.interventions.pause
        step = context.reloading.step
        return {
            "name": context.name,
            "term": None if store is None else store.term,
            "policy": policy.name,
            "policy_problem": printable(policy.problem, _TEXT_LIMIT),
            "database_problem": "" if store is None else printable(store.database.health.problem, _TEXT_LIMIT),
            "plan": 0 if decision is None else decision.number,
            "planned_s": None if decision is None else decision.snapshot.time_s,
            "levels": 8 if decision is None else decision.snapshot.num_levels,
            "reloading": "" if step is None else step.words,
            "paused": None if pause is None else pause_row(pause),
            "standby": None,
        }

    def _switches(self) -> _Rows:
        now_s, decision = self.context.clock.now_s(), self.context.planner.decision
        rows: _Rows = {}
        for status in self.context.southbound.statuses():
            planned = 0
            if decision is not None:
                planned = len(decision.rules.get(status.name, ())) + len(decision.job_rules.get(status.name, ()))
            rows[status.name] = {
                "address": status.address,
                "device": status.device_id,
                "condition": status.condition,
                "since_s": self._steady(status.name, now_s - status.changed_ago_s),
                "problem": printable(status.problem, _TEXT_LIMIT),
                "rules": status.num_rules,
                "planned_rules": planned,
                "drifted": status.drifted,
            }
        return rows

    def _steady(self, name: str, time_s: float) -> float:
        """A time that is known from its age, without the changes that come of rounding."""
        known = self._since_s.get(name)
        if known is None or abs(known - time_s) > _SAME_S:
            known = self._since_s[name] = round(time_s, 1)
        return known

    def _jobs(self) -> Iterator[tuple[str, object]]:
        registry, view = self.context.registry, self._view
        jobs = registry.jobs
        names = {job.request.name for job in jobs}
        self._times.keep(names)
        for name in self._job_rows.keys() - names:
            del self._job_rows[name]
        planned = {} if view is None else view.jobs
        for job in jobs:
            name = job.request.name
            parts = job, planned.get(name), profile_word(job, self.context.profiling), self._iteration_s(name)
            known = self._job_rows.get(name)
            if known is None or not _are_same(known[0], parts):
                known = self._job_rows[name] = parts, job_row(*parts)
            yield name, known[1]

    def _iteration_s(self, job: str) -> float | None:
        measured = self.context.profiling.measured(job)
        if measured is not None:
            return measured.rhythm.period_s
        return self._times.note(job, self.context.registry.instances(job))

    async def _links(self, drawn: FabricMap) -> _Rows:
        """What a Plan does with cables, made once for each view, and which are not used."""
        view = self._view
        if self._planned_links[0] is not view or not self._planned_links[1]:
            self._planned_links = view, await self._in_slices(self._rows_of_cables(drawn, view))
        planner, now_s, rows = self.context.planner, self.context.clock.now_s(), self._planned_links[1]
        dead = {cable.link // 2: cable for cable in planner.links.dead_cables(now_s)}
        drained = {link // 2 for link in planner.links.drained_links(now_s)}
        unused = {
            key: {**row, **_unused(dead.get(cable), now_s)}
            for cable in sorted(dead.keys() | drained)
            if isinstance(row := rows.get(key := str(cable)), dict)
        }
        return {**rows, **unused}

    def _rows_of_cables(self, drawn: FabricMap, view: PlanView | None) -> Iterator[tuple[str, object]]:
        for cable in drawn.cables:
            links = (2 * cable, 2 * cable + 1)
            planned = [0.0, 0.0] if view is None else [view.utilisation[link] for link in links]
            highest = [0.0] if view is None else [view.intensity[link] or 0.0 for link in links]
            yield (
                str(cable),
                {
                    "name": self._names[cable],
                    "planned": [round(share, 3) for share in planned],
                    "intensity": short(max(highest)),
                    "jobs": 0 if view is None else max(view.num_jobs[link] for link in links),
                    "state": "",
                },
            )

    def _loads(self, drawn: FabricMap) -> _Rows:
        """What has been measured of cables lately, both ways: shares of their rates, to a hundredth, or None.

        Rows of their own, since they change most often.
        """
        since_s = self.context.clock.now_s() - STALE_AFTER_S
        loads_bps = self.context.telemetry.links.loads_bps(self._drawn_links, since_s)
        shares = (loads_bps / self._rates_bps).round(2).reshape(-1, 2)
        rows = zip(drawn.cables, shares.tolist(), np.isnan(shares).tolist(), strict=True)
        return {
            str(cable): [None if is_unknown else share for share, is_unknown in zip(row, unknown, strict=True)]
            for cable, row, unknown in rows
            if not all(unknown)
        }


def _are_same(known: Sequence[object], parts: Sequence[object]) -> bool:
    """Whether the parts of a row are what they were; objects are the very same ones."""
    return all(one is other or one == other for one, other in zip(known, parts, strict=True))


def _unused(dead: DeadCable | None, now_s: float) -> _Rows:
    """Why nothing is routed over a cable; None: it is drained."""
    if dead is None:
        return {"state": "drained"}
    until_s = None if dead.held_for_s is None else round(now_s + dead.held_for_s)
    return {"state": dead.state, "since_s": dead.fell_s, "falls": dead.falls, "until_s": until_s}


def _view_and_changes(decision: Decision, fabric: Fabric, earlier: Decision | None) -> tuple[PlanView, _Rows]:
    """The view of a decision, and its changes as a row, which may be long."""
    view = plan_view(decision, fabric, earlier)
    return view, asdict(view.changes)


def _is_over(task: "asyncio.Task[None] | None") -> bool:
    return task is None or task.done()


async def _logged(work: Coroutine[Any, Any, None]) -> None:
    """Do work of which the rest of the page does not depend."""
    try:
        await work
    except Exception:
        _LOG.exception("a part of the page cannot be brought up to date")
