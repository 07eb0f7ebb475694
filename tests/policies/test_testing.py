"""The checks for policy authors pass on the shipped policies, and fail on policies that lack the property."""

from collections.abc import Callable
from dataclasses import replace
from itertools import count

import pytest

from policies import Plan, Policy, Snapshot, decide, find_policy, plan_in_order, policy_names
from policies.coflows import job_coflows
from policies.plan_builder import own_levels
from policies.testing import (
    CHECKS,
    Check,
    check_bounded_steps,
    check_damping,
    check_decisions_repeat,
    check_memory_is_recorded,
    check_no_inversion,
    check_order_of_jobs_does_not_matter,
    check_plans_are_valid,
    check_scale_does_not_matter,
    random_snapshot,
    snapshots,
)
from policies.validation import check_snapshot

pytestmark = pytest.mark.slow

# Where two cuts of Crux's compression are worth the same, rounding decides between them.
NOT_CLAIMED = {("crux", check_damping)}
FIFO = find_policy("fifo")


@pytest.mark.parametrize("name", policy_names())
@pytest.mark.parametrize("check", CHECKS, ids=lambda check: check.__name__)
def test_the_shipped_policies_have_the_properties(name: str, check: Check) -> None:
    if (name, check) not in NOT_CLAIMED:
        check(find_policy(name))


def changed(change: Callable[[Snapshot, Plan], Plan]) -> Policy:
    """Return the policy FIFO with its Plans changed."""
    return replace(FIFO, decide=lambda snapshot: change(snapshot, FIFO.decide(snapshot)))


def _with_level(plan: Plan, level: int) -> Plan:
    return replace(plan, flows={key: flow._replace(level=level) for key, flow in plan.flows.items()})


def _by_order_given(snapshot: Snapshot) -> Plan:
    coflows = {coflow.job.name: coflow for coflow in job_coflows(snapshot)}
    return plan_in_order(
        "fifo",
        snapshot.num_levels,
        [coflows[job.name] for job in snapshot.jobs],
        order=lambda sending: range(len(sending)),
        levels=own_levels,
        reason=lambda coflow: coflow.job.name,
    )


def _reversed_levels(snapshot: Snapshot, plan: Plan) -> Plan:
    top = snapshot.num_levels - 1
    return replace(plan, flows={key: flow._replace(level=top - flow.level) for key, flow in plan.flows.items()})


def _cubic(snapshot: Snapshot, plan: Plan) -> Plan:
    steps = [number for number in range(len(snapshot.jobs) ** 3) if number >= 0]
    return plan if steps else replace(plan, flows={})


CALLS = count()
BROKEN = {
    check_plans_are_valid: changed(lambda snapshot, plan: _with_level(plan, snapshot.num_levels)),
    check_decisions_repeat: changed(lambda _, plan: _with_level(plan, next(CALLS) % 2)),
    check_order_of_jobs_does_not_matter: replace(FIFO, decide=_by_order_given),
    check_scale_does_not_matter: changed(
        lambda snapshot, plan: _with_level(plan, int(sum(f.size_bytes for j in snapshot.jobs for f in j.flows) > 1e9))
    ),
    check_no_inversion: changed(_reversed_levels),
    check_damping: changed(lambda snapshot, plan: plan if snapshot.previous is None else _with_level(plan, 0)),
    check_bounded_steps: changed(_cubic),
    check_memory_is_recorded: changed(
        lambda snapshot, plan: replace(
            plan if snapshot.previous is None or snapshot.previous.memory == [1] else _with_level(plan, 0), memory=(1,)
        )
    ),
}


@pytest.mark.parametrize("check", CHECKS, ids=lambda check: check.__name__)
def test_a_policy_without_the_property_does_not_pass(check: Check) -> None:
    with pytest.raises(AssertionError, match=r"policy 'fifo', random_snapshot\(\d+\): "):
        check(BROKEN[check])


def test_random_snapshots_are_sound_and_reproducible_and_of_every_kind() -> None:
    found = list(snapshots(seed=3, count=60))
    for snapshot in found:
        check_snapshot(snapshot)
    assert found[4] == random_snapshot(7)
    flows = [flow for snapshot in found for job in snapshot.jobs for flow in job.flows]
    assert any(not flow.sends for flow in flows)
    assert any(len(flow.candidates) > 1 for flow in flows)
    assert any(not snapshot.jobs for snapshot in found)
    assert len(random_snapshot(5, num_jobs=12).jobs) == 12
    assert decide(FIFO, found[0]) == decide(FIFO, found[0])
