"""Records every Plan that comes into force, in the background, and reads back the last one of the controller before."""

import logging
from collections import deque
from collections.abc import Sequence
from functools import partial
from typing import Any, NamedTuple

from sqlalchemy import Row

from controller.background import BackgroundTask, run_planning
from controller.clock import Clock
from controller.config import RecordConfig
from controller.errors import StoreError, UnknownOutcomeError
from controller.events import BurstLog, EventKind
from controller.record.changes import RecordedState, changed_facts, recorded_state
from controller.record.codec import Setting, SnapshotCodec
from controller.record.decisions import DecisionDecoder, RecordedDecision
from controller.record.facts import RecordError
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
"""The most Plans that wait for a slow database; they share most of their objects."""
_DAY_S = 86_400.0


class _Waiting(NamedTuple):
    """A Plan that waits for the database, with what it is to be encoded by."""

    row: PlanRow
    snapshot: Snapshot
    plan: Plan
    codec: SnapshotCodec
    policy: Policy


class Recorder:
    """Records decisions in the database.

    Attributes:
        number: The number of the last Plan of the controller before; 0 where there is none.
        plan: That Plan; None where there is none, or it was decided on another fabric.
        recorded_number: The number of the last Plan that is recorded by now.
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
        self._codec = SnapshotCodec(setting, routing)
        self._known: RecordedState | None = RecordedState()
        """The state that the record has by now; None where that is uncertain."""
        self._known_fabric = routing.fabric
        """The fabric of that state."""
        self._last = 0
        self._waiting: deque[_Waiting] = deque()
        self._writing = BackgroundTask(self._write_all)
        self._log = BurstLog(_LOG, logging.ERROR)
        try:
            newest = database.read(facts.newest_decision)
            last = None if newest is None else database.decode(partial(self._decoded, *newest))
        except RecordError as error:
            raise StoreError(f"{database.name}: {' '.join(str(error).split())}") from error
        if last is not None:
            self._resume_from(last)
        self.recorded_number = self.number
        self.begin_plan(self.number)

    def use(self, setting: Setting, policy: Policy, retention: RecordConfig, routing: Routing | None = None) -> None:
        """Record Plans that are decided under another setting from now on; ``routing`` is set where the fabric changes.

        The first Plan on another fabric has none before it.
        """
        self._policy, self._retention = policy, retention
        if routing is not None:
            self.plan, self._last = None, 0
        self._codec = SnapshotCodec(setting, routing or self._codec.routing)

    def begin_plan(self, number: int) -> None:
        """Record requests to switches under this Plan from now on."""
        self._trail.plan_number = number

    def record(self, number: int, snapshot: Snapshot, plan: Plan) -> None:
        """Record a Plan that has come into force, in the background.

        Where the database fails, or is too far behind, that is logged, and the record has a gap.
        """
        if len(self._waiting) == _MOST_WAITING:
            self._tell_gap(number, f"{_MOST_WAITING} before it still wait for the database")
        else:
            row = PlanRow(number, self._last, snapshot.time_s)
            self._waiting.append(_Waiting(row, snapshot, plan, self._codec, self._policy))
        self._last = number
        self._writing.start()

    async def flush(self) -> None:
        """Wait until all Plans are recorded, or could not be."""
        await self._writing.join()

    async def _write_all(self) -> None:
        while self._waiting:
            await self._write(self._waiting[0])
            self._waiting.popleft()

    async def _write(self, waiting: "_Waiting") -> None:
        row, fabric = waiting.row, waiting.codec.fabric
        if fabric is not self._known_fabric:
            # Its numbers mean something else.
            self._known, self._known_fabric = None, fabric
        try:
            known, rows = await run_planning(self._rows_for, waiting)
            # Other writes come between these, so that registrations do not wait for a large Plan.
            for step in facts.decision_steps(row, rows, is_whole=self._known is None):
                await self._database.write(step)
        except StoreError as error:
            self._tell_gap(row.number, str(error))
            if isinstance(error, UnknownOutcomeError):
                self._known = None
        except Exception:
            _LOG.exception("plan %d cannot be encoded for the record", row.number)
        else:
            self._known, self.recorded_number = known, row.number
            if row.number % _PRUNED_EVERY == 0:
                await self._prune()

    def _tell_gap(self, number: int, problem: str) -> None:
        words = "plan %d is not in the record: %s"
        self._log.tell(EventKind.RECORD_GAP, words, number, problem, plan=number, problem=problem)

    async def _prune(self) -> None:
        before_s = self._clock.now_s() - self._retention.audit_days * _DAY_S
        try:
            for delete_old in (partial(facts.prune, self._retention.plans), partial(audit.prune, before_s)):
                while await self._database.write(delete_old):
                    pass
        except StoreError as error:
            _LOG.error("the record is not pruned: %s", error)

    def _resume_from(self, last: RecordedDecision) -> None:
        self.number = last.number
        setting = self._codec.setting
        if (setting.topology, setting.hash_seed) == (last.setting.topology, last.setting.hash_seed):
            self.plan, self._last = last.plan, last.number
        else:
            _LOG.warning("plan %d was decided on another topology or hash seed: all is decided anew", last.number)
        self._known = recorded_state(last.snapshot, last.plan, last.setting, last.policy)

    def _rows_for(self, waiting: "_Waiting") -> tuple[RecordedState, ChangeRows]:
        codec = waiting.codec
        now = recorded_state(waiting.snapshot, waiting.plan, codec.setting, waiting.policy)
        return now, facts.change_rows(changed_facts(self._known or RecordedState(), now, codec))

    def _decoded(self, plan: PlanRow, rows: Sequence[Row[Any]]) -> RecordedDecision:
        decoder = DecisionDecoder(self._find)
        decoder.apply(map(facts.decoded, rows))
        return decoder.decision(plan.number, plan.previous, plan.time_s)

    def _find(self, name: str) -> Policy:
        """Find the configured policy, else a registered one: a database must not decide what is imported."""
        return self._policy if name == self._codec.setting.policy else find_policy(name)
