"""Recorded decisions, decoded from facts in the order in which they were recorded."""

import logging
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace

from controller.record.codec import (
    CONTROLLER,
    FOREIGN_LOADS,
    OPEN_GROUPS,
    PINS,
    PROFILED,
    Setting,
    SnapshotCodec,
    decode_memory,
    decode_plan,
)
from controller.record.facts import Body, FactKey, FactKind, RecordError
from policies.job import Job
from policies.memory_codec import EncodedMemory
from policies.plan import Plan
from policies.policy import Policy
from policies.registry import PolicyError, find_policy
from policies.snapshot import Snapshot
from topologies.fabric import Fabric

_LOG = logging.getLogger(__name__)

FindPolicy = Callable[[str], Policy]
"""Finds the policy that a record names; raises PolicyError where there is none, or it must not be imported."""


@dataclass(frozen=True, slots=True)
class RecordedDecision:
    """A recorded Plan and the Snapshot it was decided on.

    ``is_complete`` says whether the Snapshot has the Plan before; it lacks one that is not in the record. Where the
    policy was not found, ``policy`` is None and the Plan has no memory.
    """

    number: int
    setting: Setting
    policy: Policy | None
    fabric: Fabric
    snapshot: Snapshot
    plan: Plan
    is_complete: bool


class DecisionDecoder:
    """Decodes decisions one after the other.

    Example::

        decoder = DecisionDecoder()
        decoder.apply([(FactKey(FactKind.JOB, "gpt"), body), ...])
        first = decoder.decision(1, previous=0, time_s=0.0)
    """

    def __init__(self, find: FindPolicy = find_policy) -> None:
        self._find = find
        self._policy: Policy | None = None
        self._facts: dict[FactKey, Body] = {}
        self._jobs: dict[str, Job] = {}
        self._codec: SnapshotCodec | None = None
        self._last: RecordedDecision | None = None

    def apply(self, changes: Iterable[tuple[FactKey, Body]]) -> None:
        """Change facts; the body None ends one."""
        for key, body in changes:
            if body is None:
                self._facts.pop(key, None)
            else:
                self._facts[key] = body
            if key.kind is FactKind.JOB:
                self._jobs.pop(key.key, None)
            elif key == CONTROLLER:
                self._jobs.clear()
                self._codec = None

    def decision(self, number: int, previous: int, time_s: float) -> RecordedDecision:
        """Decode the decision of this number from the facts that hold now.

        ``previous`` is the number of the Plan in force before, 0 where there was none. Raises RecordError where the
        facts make no decision.
        """
        try:
            decision = self._decode(number, previous, time_s)
        except (KeyError, TypeError, IndexError, AttributeError, ValueError, OverflowError) as error:
            raise RecordError(f"plan {number} cannot be put together: {type(error).__name__}: {error}") from error
        self._last = decision
        return decision

    def _decode(self, number: int, previous: int, time_s: float) -> RecordedDecision:
        if self._codec is None:
            setting = Setting.model_validate(self._facts[CONTROLLER])
            self._codec = SnapshotCodec(setting, setting.routing())
            self._policy = self._found(setting.policy)
        codec = self._codec
        for kind, name in self._facts:
            if kind is FactKind.JOB and name not in self._jobs:
                self._jobs[name] = codec.decode_job(name, self._facts[FactKey(kind, name)])
        snapshot = codec.decode_snapshot(
            time_s,
            list(self._jobs.values()),
            self._facts.get(OPEN_GROUPS),
            self._facts.get(FOREIGN_LOADS),
            self._facts.get(PROFILED),
            self._facts.get(PINS),
        )
        policy = self._policy
        plan = decode_plan(codec.setting.policy if policy is None else policy.name, snapshot, self._facts)
        if policy is not None:
            plan = _with_memory(policy, plan, snapshot, decode_memory(self._facts))
        last = self._last
        has_last = last is not None and last.number == previous
        before = last.plan if last is not None and has_last else None
        is_complete = has_last or previous == 0
        return RecordedDecision(
            *(number, codec.setting, policy, codec.fabric),
            *(replace(snapshot, previous=before), plan, is_complete),
        )

    def _found(self, name: str) -> Policy | None:
        try:
            return self._find(name)
        except PolicyError as error:
            _LOG.warning("the memory of its plans is not read: %s", error)
            return None


def _with_memory(policy: Policy, plan: Plan, snapshot: Snapshot, encoded: EncodedMemory) -> Plan:
    try:
        return policy.with_memory(plan, encoded, snapshot)
    except Exception:
        # The code of a policy may raise anything; a Plan is of use without its memory.
        _LOG.exception("the memory of a plan of %s cannot be read", policy.name)
        return plan
