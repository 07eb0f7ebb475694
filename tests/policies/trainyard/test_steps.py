"""Single steps of the policy agree with its Plans."""

from dataclasses import replace

from hypothesis import given, settings

from policies.snapshot import Snapshot
from policies.trainyard.policy import trainyard
from policies.trainyard.steps import levels_in_order, orders
from tests.policies.builders import GBPS, make_job, make_links, snapshots


@settings(max_examples=40)
@given(snapshots())
def test_levels_for_its_own_order_are_the_plans(snapshot: Snapshot) -> None:
    order = [name for component in orders(snapshot) for name in component]
    plan = trainyard(snapshot)
    found = levels_in_order(snapshot, order)
    sending = {job.name for job in snapshot.jobs if len(job.reachable_links)}
    assert sorted(order) == sorted(found) == sorted(sending)
    assert found == {job.name: job.level for job in plan.jobs if job.name in sending}


@settings(max_examples=40)
@given(snapshots())
def test_jobs_that_never_meet_are_in_different_orders(snapshot: Snapshot) -> None:
    plan = trainyard(snapshot)
    links = {
        job.name: {link for flow in job.flows if flow.size_bytes > 0 for link in plan.flows[flow.key].path or ()}
        for job in snapshot.jobs
    }
    found = orders(snapshot)
    for component in found:
        for other in found:
            if component is not other:
                assert not any(links[one] & links[two] for one in component for two in other)


def test_levels_follow_the_order_that_is_given() -> None:
    """Two equal jobs overload one link: the first in the order gets the higher level."""
    jobs = tuple(make_job(name, [(GBPS, ((0,),))]) for name in ("a", "b"))
    snapshot = Snapshot(0.0, make_links(GBPS), jobs, num_levels=2)
    for first, second in (("a", "b"), ("b", "a")):
        levels = levels_in_order(snapshot, [first, second])
        assert levels[first] > levels[second]
    assert set(levels_in_order(replace(snapshot, num_levels=1), ["a", "b"]).values()) == {0}
