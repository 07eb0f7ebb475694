"""Decides recorded decisions again, by the same pipeline as the controller."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from enum import StrEnum
from functools import partial

from controller.planning.decision_pipeline import DecisionPipeline
from controller.record.decisions import FindPolicy, RecordedDecision
from controller.record.facts import RecordError
from policies.plan import Plan
from policies.plan_difference import PlanDifference, plan_difference
from policies.policy import Policy, decide
from policies.registry import find_policy
from policies.snapshot import Snapshot


class Verdict(StrEnum):
    """The comparison of a recorded Plan with the one decided again."""

    SAME = "same"
    DIFFERENT = "different"
    NOT_CHECKED = "not checked"
    """The record lacks the Plan that was in force before."""


@dataclass(frozen=True, slots=True)
class Replayed:
    """A recorded decision and the Plan decided now; ``differs_in`` names the jobs on which the two Plans differ."""

    recorded: RecordedDecision
    plan: Plan
    verdict: Verdict
    difference: PlanDifference
    differs_in: tuple[str, ...]


def replay(decisions: Iterable[RecordedDecision], find: FindPolicy = find_policy) -> Iterator[Replayed]:
    """Decide each again, on its Snapshot and the recorded Plan before it, so that one difference causes no others.

    Raises PolicyError where ``find`` does not find the policy of one, and RecordError where it cannot decide.
    """
    for recorded in decisions:
        policy = recorded.policy or find(recorded.setting.policy)
        plan = _decided(policy, recorded.snapshot, recorded.number)
        is_same = plan == recorded.plan
        verdict = Verdict.SAME if is_same else Verdict.DIFFERENT
        yield _replayed(recorded, plan, verdict if recorded.is_complete else Verdict.NOT_CHECKED)


def replay_under(policy: Policy, decisions: Iterable[RecordedDecision]) -> Iterator[Replayed]:
    """Decide each again under another policy, as if that had decided all along; raises RecordError where it cannot."""
    previous: Plan | None = None
    for recorded in decisions:
        previous = _decided(policy, replace(recorded.snapshot, previous=previous), recorded.number)
        is_same = replace(previous, policy=recorded.plan.policy) == recorded.plan
        yield _replayed(recorded, previous, Verdict.SAME if is_same else Verdict.DIFFERENT)


def _decided(policy: Policy, snapshot: Snapshot, number: int) -> Plan:
    try:
        return DecisionPipeline(partial(decide, policy)).decide(snapshot)
    except Exception as error:
        # The code of a policy may raise anything, and the Snapshot is as the file has it.
        problem = f"{policy.name} cannot decide plan {number} again: {type(error).__name__}: {error}"
        raise RecordError(problem) from error


def _replayed(recorded: RecordedDecision, plan: Plan, verdict: Verdict) -> Replayed:
    before, after = ({job.name: job for job in each.jobs} for each in (recorded.plan, plan))
    differing = {name for name in before.keys() | after.keys() if before.get(name) != after.get(name)}
    differing |= {
        key.job
        for key in recorded.plan.flows.keys() | plan.flows.keys()
        if recorded.plan.flows.get(key) != plan.flows.get(key)
    }
    return Replayed(recorded, plan, verdict, plan_difference(recorded.plan, plan), tuple(sorted(differing)))
