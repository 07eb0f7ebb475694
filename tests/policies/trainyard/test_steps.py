"""Single steps of the policy: an order of all that send, and levels that follow a given one."""

import math
from dataclasses import replace

from hypothesis import given, settings

from policies.snapshot import Snapshot
from policies.trainyard.options import TrainyardOptions
from policies.trainyard.steps import levels_in_order, order
from tests.policies.builders import GBPS, make_job, make_links, snapshots


@settings(max_examples=8, deadline=None)
@given(snapshots())
def test_all_that_send_have_a_place_and_a_level(snapshot: Snapshot) -> None:
    found = order(snapshot)
    sending = {job.name for job in snapshot.jobs if len(job.reachable_links)}
    assert sorted(found) == sorted(sending)
    levels = levels_in_order(snapshot, found)
    assert levels.keys() == sending
    assert all(0 <= level < snapshot.num_levels for level in levels.values())


def test_levels_follow_the_order_that_is_given() -> None:
    """Two equal jobs overload one link: the first in the order gets the higher level."""
    jobs = tuple(make_job(name, [(GBPS, ((0,),))]) for name in ("a", "b"))
    snapshot = Snapshot(0.0, make_links(GBPS), jobs, num_levels=2)
    no_search = TrainyardOptions(evaluations=1, min_evaluations=1, least_of_bound=0.0, longest_iteration_s=math.inf)
    for first, second in (("a", "b"), ("b", "a")):
        levels = levels_in_order(snapshot, [first, second], no_search)
        assert levels[first] > levels[second]
    assert set(levels_in_order(replace(snapshot, num_levels=1), ["a", "b"]).values()) == {0}
