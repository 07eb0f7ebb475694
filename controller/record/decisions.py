"""Recorded decisions, put together again from facts as they come."""

from collections.abc import Iterable
from dataclasses import dataclass, replace

from controller.record.facts import Body, FactKey, FactKind, RecordError
from controller.record.plans import plan_of
from controller.record.snapshots import CONTROLLER, FOREIGN_LOADS, OPEN_GROUPS, PROFILED, Setting, SnapshotFacts
from policies.job import Job
from policies.plan import Plan
from policies.snapshot import Snapshot
from topologies.fabric import Fabric


@dataclass(frozen=True, slots=True)
class RecordedDecision:
    """A Plan as it was recorded, and the Snapshot it was decided on, with the Plan before where that is in the record.

    ``is_complete``: it is, or there was none.
    """

    number: int
    setting: Setting
    fabric: Fabric
    snapshot: Snapshot
    plan: Plan
    is_complete: bool


class Decisions:
    """Puts decisions together, in their order."""

    def __init__(self) -> None:
        self._facts: dict[FactKey, Body] = {}
        self._jobs: dict[str, Job] = {}
        self._snapshots: SnapshotFacts | None = None
        self._last: RecordedDecision | None = None

    def tell(self, changes: Iterable[tuple[FactKey, Body]]) -> None:
        """These facts are so from now on; None: there is no such fact any longer."""
        for key, body in changes:
            if body is None:
                self._facts.pop(key, None)
            else:
                self._facts[key] = body
            if key.kind is FactKind.JOB:
                self._jobs.pop(key.key, None)
            elif key == CONTROLLER:
                self._jobs.clear()
                self._snapshots = None

    def decided(self, number: int, previous: int, time_s: float) -> RecordedDecision:
        """The decision of this number on what has been told; ``previous`` is that of the Plan in force, 0 if none.

        Raises RecordError where it does not make a decision.
        """
        try:
            decision = self._decided(number, previous, time_s)
        except (KeyError, TypeError, IndexError, AttributeError, ValueError) as error:
            raise RecordError(f"plan {number} cannot be put together: {type(error).__name__}: {error}") from error
        self._last = decision
        return decision

    def _decided(self, number: int, previous: int, time_s: float) -> RecordedDecision:
        if self._snapshots is None:
            setting = Setting.model_validate(self._facts[CONTROLLER])
            self._snapshots = SnapshotFacts(setting, setting.routing())
        snapshots = self._snapshots
        for kind, name in self._facts:
            if kind is FactKind.JOB and name not in self._jobs:
                self._jobs[name] = snapshots.job(name, self._facts[FactKey(kind, name)])
        snapshot = snapshots.snapshot(
            time_s,
            list(self._jobs.values()),
            self._facts.get(OPEN_GROUPS),
            self._facts.get(FOREIGN_LOADS),
            self._facts.get(PROFILED),
        )
        plan = plan_of(snapshots.setting.policy, snapshot, self._facts)
        last = self._last
        knows_last = last is not None and last.number == previous
        before = last.plan if last is not None and knows_last else None
        is_complete = knows_last or previous == 0
        return RecordedDecision(
            number, snapshots.setting, snapshots.fabric, replace(snapshot, previous=before), plan, is_complete
        )
