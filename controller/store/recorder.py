"""Records every Plan that comes into force, and knows the last one of before."""

import asyncio
import logging
from collections import deque
from functools import partial

from sqlalchemy import Connection

from controller.clock import Clock
from controller.errors import StoreError, UnknownOutcomeError
from controller.record.changes import Known, changes, known_of
from controller.record.decisions import Decisions, RecordedDecision
from controller.record.facts import RecordError
from controller.record.snapshots import Setting, SnapshotFacts
from controller.record_config import RecordConfig
from controller.registry.background import Background
from controller.store import audit, facts
from controller.store.audit import AuditTrail
from controller.store.database import Database
from controller.store.facts import ChangeRows, PlanRow
from policies.plan import Plan
from policies.policy import Policy
from policies.registry import find_policy
from policies.snapshot import Snapshot
from topologies.routing import Routing

_LOG = logging.getLogger(__name__)

_PRUNED_EVERY = 100
"""Plans."""
_MOST_WAITING = 8
"""Plans that a slow database may be behind by; they share most of what they are made of."""
_DAY_S = 86_400.0


class Recorder:
    """Writes decisions down; ``number`` and ``plan`` are those of the last one that is recorded at the start.

    ``plan`` is None where there is none, or none for this fabric. ``recorded_number`` is that of the last one by now.
    """

    def __init__(
        self,
        database: Database,
        trail: AuditTrail,
        setting: Setting,
        policy: Policy,
        routing: Routing,
        retention: RecordConfig,
        clock: Clock,
    ) -> None:
        self.number = 0
        self.plan: Plan | None = None
        self._database = database
        self._trail = trail
        self._retention = retention
        self._clock = clock
        self._policy = policy
        self._facts = SnapshotFacts(setting, routing)
        self._known: Known | None = Known()
        """What was recorded last; None where that is not known."""
        self._last = 0
        self._waiting: deque[tuple[PlanRow, Snapshot, Plan]] = deque()
        self._recording = Background(self._record_all)
        try:
            last = database.read(self._last_decision)
        except RecordError as error:
            raise StoreError(f"{database.name}: {error}") from error
        if last is not None:
            self._go_on_from(last)
        self.recorded_number = self.number
        self.begin(self.number)

    def begin(self, number: int) -> None:
        """What is written to switches from now on is for this Plan."""
        self._trail.plan_number = number

    def record(self, number: int, snapshot: Snapshot, plan: Plan) -> None:
        """A Plan has come into force; it is recorded in the background.

        Where the database does not take it, or is too far behind, that is logged, and the record has a gap.
        """
        if len(self._waiting) == _MOST_WAITING:
            _LOG.error("plan %d is not in the record: %d before it still wait for the database", number, _MOST_WAITING)
        else:
            self._waiting.append((PlanRow(number, self._last, snapshot.time_s), snapshot, plan))
        self._last = number
        self._recording.begin()

    async def recorded(self) -> None:
        """Return once all is recorded, or could not be."""
        await self._recording.done()

    async def _record_all(self) -> None:
        while self._waiting:
            await self._record(*self._waiting[0])
            self._waiting.popleft()

    async def _record(self, row: PlanRow, snapshot: Snapshot, plan: Plan) -> None:
        try:
            known, rows = await asyncio.to_thread(self._changed, snapshot, plan)
            await self._database.write(partial(facts.write_decision, row, rows, is_whole=self._known is None))
        except StoreError as error:
            _LOG.error("plan %d is not in the record: %s", row.number, error)
            if isinstance(error, UnknownOutcomeError):
                self._known = None
        except Exception:
            _LOG.exception("plan %d cannot be told to the record", row.number)
        else:
            self._known, self.recorded_number = known, row.number
            if row.number % _PRUNED_EVERY == 0:
                await self._prune()

    async def _prune(self) -> None:
        try:
            await self._database.write(self._forget)
        except StoreError as error:
            _LOG.error("of the record nothing is forgotten for now: %s", error)

    def _go_on_from(self, last: RecordedDecision) -> None:
        self.number = last.number
        setting = self._facts.setting
        if (setting.topology, setting.hash_seed) == (last.setting.topology, last.setting.hash_seed):
            self.plan, self._last = last.plan, last.number
        else:
            _LOG.warning("plan %d was decided on another topology or hash seed: all is decided anew", last.number)
        self._known = known_of(last.snapshot, last.plan, last.setting, last.policy)

    def _changed(self, snapshot: Snapshot, plan: Plan) -> tuple[Known, ChangeRows]:
        now = known_of(snapshot, plan, self._facts.setting, self._policy)
        return now, facts.change_rows(changes(self._known or Known(), now, self._facts))

    def _forget(self, connection: Connection) -> None:
        facts.prune(self._retention.plans, connection)
        audit.prune(self._clock.now_s() - self._retention.audit_days * _DAY_S, connection)

    def _last_decision(self, connection: Connection) -> RecordedDecision | None:
        newest = facts.newest_plan(connection)
        if newest is None:
            return None
        decisions = Decisions(self._find)
        decisions.tell(facts.facts_at(newest.number, connection))
        return decisions.decided(newest.number, newest.previous, newest.time_s)

    def _find(self, name: str) -> Policy:
        """The policy that is configured here, else a registered one: a database must not say what is imported."""
        return self._policy if name == self._facts.setting.policy else find_policy(name)
