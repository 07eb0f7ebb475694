"""Records every Plan that comes into force, and knows the last one of before."""

import asyncio
import logging
from functools import partial

from sqlalchemy import Connection

from controller.clock import Clock
from controller.policy.plan import Plan
from controller.policy.snapshot import Snapshot
from controller.record.changes import Known, changes, known_of
from controller.record.decisions import Decisions, RecordedDecision
from controller.record.facts import RecordError
from controller.record.snapshots import Setting, SnapshotFacts
from controller.store import audit, facts
from controller.store.audit import AuditTrail
from controller.store.config import RecordConfig
from controller.store.database import Database
from controller.store.errors import StoreError
from controller.store.facts import ChangeRows, PlanRow
from topologies.routing import Routing

_LOG = logging.getLogger(__name__)

_PRUNED_EVERY = 100
"""Plans."""
_DAY_S = 86_400.0


class Recorder:
    """Writes decisions down; ``number`` and ``plan`` are those of the last one that is recorded at the start.

    ``plan`` is None where there is none, or none for this fabric.
    """

    def __init__(
        self,
        database: Database,
        trail: AuditTrail,
        setting: Setting,
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
        self._facts = SnapshotFacts(setting, routing)
        self._known = Known()
        self._last = 0
        try:
            last = database.read(_last_decision)
        except RecordError as error:
            raise StoreError(f"{database.name}: {error}") from error
        if last is not None:
            self._go_on_from(last)
        self.begin(self.number)

    def begin(self, number: int) -> None:
        """What is written to switches from now on is for this Plan."""
        self._trail.plan_number = number

    async def record(self, number: int, snapshot: Snapshot, plan: Plan) -> None:
        """A Plan has come into force. Where the database does not take it, that is logged, and the record has a gap."""
        previous = self._last
        self._last = number
        try:
            known, rows = await asyncio.to_thread(self._changed, snapshot, plan)
            await self._database.write(partial(facts.write_decision, PlanRow(number, previous, snapshot.time_s), rows))
            self._known = known
            if number % _PRUNED_EVERY == 0:
                await self._database.write(self._prune)
        except StoreError as error:
            _LOG.error("plan %d is not in the record: %s", number, error)
        except Exception:
            _LOG.exception("plan %d cannot be told to the record", number)

    def _go_on_from(self, last: RecordedDecision) -> None:
        self.number = last.number
        setting = self._facts.setting
        if (setting.topology, setting.hash_seed) == (last.setting.topology, last.setting.hash_seed):
            self.plan, self._last = last.plan, last.number
        self._known = known_of(last.snapshot, last.plan, last.setting)

    def _changed(self, snapshot: Snapshot, plan: Plan) -> tuple[Known, ChangeRows]:
        now = known_of(snapshot, plan, self._facts.setting)
        return now, facts.change_rows(changes(self._known, now, self._facts))

    def _prune(self, connection: Connection) -> None:
        facts.prune(self._retention.plans, connection)
        audit.prune(self._clock.now_s() - self._retention.audit_days * _DAY_S, connection)


def _last_decision(connection: Connection) -> RecordedDecision | None:
    newest = facts.newest_plan(connection)
    if newest is None:
        return None
    decisions = Decisions()
    decisions.tell(facts.facts_at(newest.number, connection))
    return decisions.decided(newest.number, newest.previous, newest.time_s)
