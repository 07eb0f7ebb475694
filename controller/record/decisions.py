"""Recorded decisions, put together again from facts as they come."""

import logging
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace

from controller.record.facts import Body, FactKey, FactKind, RecordError
from controller.record.plans import memory_of, plan_of
from controller.record.snapshots import CONTROLLER, FOREIGN_LOADS, OPEN_GROUPS, PROFILED, Setting, SnapshotFacts
from policies.job import Job
from policies.memory_codec import EncodedMemory
from policies.plan import Plan
from policies.policy import Policy
from policies.registry import PolicyError, find_policy
from policies.snapshot import Snapshot
from topologies.fabric import Fabric

_LOG = logging.getLogger(__name__)

FindPolicy = Callable[[str], Policy]
"""Finds the policy that a record names; raises PolicyError where it must not be imported, or is not there."""


@dataclass(frozen=True, slots=True)
class RecordedDecision:
    """A Plan as it was recorded, and the Snapshot it was decided on, with the Plan before where that is in the record.

    ``is_complete``: it is, or there was none. ``policy`` is None where it was not found; the Plan has no memory then.
    """

    number: int
    setting: Setting
    policy: Policy | None
    fabric: Fabric
    snapshot: Snapshot
    plan: Plan
    is_complete: bool


class Decisions:
    """Puts decisions together, in their order."""

    def __init__(self, find: FindPolicy = find_policy) -> None:
        self._find = find
        self._policy: Policy | None = None
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
            self._policy = self._found(setting.policy)
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
        policy = self._policy
        plan = plan_of(snapshots.setting.policy if policy is None else policy.name, snapshot, self._facts)
        if policy is not None:
            plan = _with_memory(policy, plan, snapshot, memory_of(self._facts))
        last = self._last
        knows_last = last is not None and last.number == previous
        before = last.plan if last is not None and knows_last else None
        is_complete = knows_last or previous == 0
        return RecordedDecision(
            *(number, snapshots.setting, policy, snapshots.fabric),
            *(replace(snapshot, previous=before), plan, is_complete),
        )

    def _found(self, name: str) -> Policy | None:
        try:
            return self._find(name)
        except PolicyError as error:
            _LOG.warning("what its plans remember is not read: %s", error)
            return None


def _with_memory(policy: Policy, plan: Plan, snapshot: Snapshot, encoded: EncodedMemory) -> Plan:
    try:
        return policy.with_memory(plan, encoded, snapshot)
    except Exception:
        # Code that others may have written: a Plan without its memory is still a Plan.
        _LOG.exception("what a plan of %s remembers cannot be read", policy.name)
        return plan
