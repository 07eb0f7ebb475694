"""The variants of ``trainyard`` lack what their names say."""

import pytest

from benchmarks.policy_variants import VARIANTS
from benchmarks.small_cases import SmallCase
from policies.flows import Flow
from policies.plan import Plan
from policies.snapshot import Snapshot

CASES = [SmallCase.draw(number).snapshot for number in (1, 3, 9)]
"""Structured jobs, of which ``trainyard`` divides some and steers some."""


@pytest.fixture(scope="module")
def plans() -> dict[str, list[Plan]]:
    return {name: [variant(snapshot) for snapshot in CASES] for name, variant in VARIANTS.items()}


def levels_by_job(plan: Plan, snapshot: Snapshot) -> list[set[int]]:
    return [{plan.flows[flow.key].level for flow in job.flows} for job in snapshot.jobs]


def is_divided(plans: list[Plan]) -> bool:
    found = zip(plans, CASES, strict=True)
    return any(len(levels) > 1 for plan, snapshot in found for levels in levels_by_job(plan, snapshot))


def is_steered(plans: list[Plan]) -> bool:
    flows = [(plan.flows[flow.key], flow) for plan, case in zip(plans, CASES, strict=True) for flow in case_flows(case)]
    return any(planned.path not in (None, flow.hashed_path) for planned, flow in flows)


def case_flows(snapshot: Snapshot) -> list[Flow]:
    return [flow for job in snapshot.jobs for flow in job.flows]


def test_groups_of_a_job_stay_together_where_nobody_knows_when_they_are_needed(plans: dict[str, list[Plan]]) -> None:
    assert is_divided(plans["whole"])
    assert not is_divided(plans["task graphs guessed"])
    assert not is_divided(plans["one level a job"])
    assert not is_divided(plans["capacity alone"])


def test_paths_and_levels_are_left_out(plans: dict[str, list[Plan]]) -> None:
    assert is_steered(plans["whole"])
    assert not is_steered(plans["levels alone"])
    assert {flow.level for plan in plans["paths alone"] for flow in plan.flows.values()} == {0}


def shares_a_level(plan: Plan, snapshot: Snapshot) -> bool:
    by_job = levels_by_job(plan, snapshot)
    return sum(map(len, by_job)) > len(set[int]().union(*by_job))


def test_shared_levels_are_left_out(plans: dict[str, list[Plan]]) -> None:
    assert any(map(shares_a_level, plans["whole"], CASES))
    assert not any(map(shares_a_level, plans["no shared levels"], CASES))


def test_the_walk_is_worth_something(plans: dict[str, list[Plan]]) -> None:
    def worth(name: str) -> list[float]:
        return [plan.worth.decided for plan in plans[name] if plan.worth is not None]

    assert len(worth("whole")) == len(CASES)
    assert sum(worth("starts alone")) < sum(worth("whole"))
    assert all(of_starts <= of_whole for of_starts, of_whole in zip(worth("starts alone"), worth("whole"), strict=True))
