"""Recorded decisions decided again, by the code that decides everywhere."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from enum import StrEnum
from functools import partial

from controller.planning.decision_pipeline import DecisionPipeline
from controller.record.decisions import FindPolicy, RecordedDecision
from policies.plan import Plan
from policies.plan_difference import PlanDifference, plan_difference
from policies.policy import Policy, decide
from policies.registry import find_policy


class Verdict(StrEnum):
    """How a Plan compares with the one that is decided again."""

    SAME = "same"
    DIFFERENT = "different"
    NOT_CHECKED = "not checked"
    """It was decided with a Plan in force that is not in the record."""


@dataclass(frozen=True, slots=True)
class Replayed:
    """A recorded decision, and what is decided now; ``differs_in`` names jobs of which it is not told the same."""

    recorded: RecordedDecision
    plan: Plan
    verdict: Verdict
    difference: PlanDifference
    differs_in: tuple[str, ...]


def replay(decisions: Iterable[RecordedDecision], find: FindPolicy = find_policy) -> Iterator[Replayed]:
    """Decide each again, on its Snapshot and the recorded Plan before it, so that one difference makes no others.

    Raises PolicyError where ``find`` does not find the policy of one.
    """
    for recorded in decisions:
        plan = _pipeline(recorded.policy or find(recorded.setting.policy)).decide(recorded.snapshot)
        is_same = plan == recorded.plan
        verdict = Verdict.SAME if is_same else Verdict.DIFFERENT
        yield _replayed(recorded, plan, verdict if recorded.is_complete else Verdict.NOT_CHECKED)


def replay_under(policy: Policy, decisions: Iterable[RecordedDecision]) -> Iterator[Replayed]:
    """What another policy would have decided, had it been the one all along."""
    pipeline = _pipeline(policy)
    previous: Plan | None = None
    for recorded in decisions:
        previous = pipeline.decide(replace(recorded.snapshot, previous=previous))
        is_same = replace(previous, policy=recorded.plan.policy) == recorded.plan
        yield _replayed(recorded, previous, Verdict.SAME if is_same else Verdict.DIFFERENT)


def _pipeline(policy: Policy) -> DecisionPipeline:
    return DecisionPipeline(partial(decide, policy))


def _replayed(recorded: RecordedDecision, plan: Plan, verdict: Verdict) -> Replayed:
    before, after = ({job.name: job for job in each.jobs} for each in (recorded.plan, plan))
    differing = {name for name in before.keys() | after.keys() if before.get(name) != after.get(name)}
    differing |= {
        key.job
        for key in recorded.plan.flows.keys() | plan.flows.keys()
        if recorded.plan.flows.get(key) != plan.flows.get(key)
    }
    return Replayed(recorded, plan, verdict, plan_difference(recorded.plan, plan), tuple(sorted(differing)))
