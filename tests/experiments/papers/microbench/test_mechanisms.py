"""A mechanism apart is what the whole policy does: on paths that are given its order, and its levels for that order."""

from dataclasses import replace

import pytest

from experiments.papers.microbench.cases import draw_case
from experiments.papers.microbench.mechanisms import METHODS, Mechanism, levels, on_paths, order, paths
from policies.policy import decide
from policies.registry import find_policy
from policies.snapshot import Snapshot

CASES = [draw_case(seed, 2.5).snapshot for seed in range(11, 21)]


def chosen(policy: str, snapshot: Snapshot) -> Snapshot:
    return on_paths(snapshot, paths(policy, snapshot))


@pytest.mark.parametrize("policy", METHODS[Mechanism.PATHS])
def test_paths_are_the_policys(policy: str) -> None:
    for snapshot in CASES:
        plan = decide(find_policy(policy), snapshot)
        for job in chosen(policy, snapshot).jobs:
            assert [flow.hashed_path for flow in job.flows] == [plan.flows[flow.key].path for flow in job.flows]
            assert all(len(flow.candidates) == 1 for flow in job.flows)


@pytest.mark.parametrize("policy", METHODS[Mechanism.COMPRESSION])
def test_levels_for_its_own_order_are_the_policys(policy: str) -> None:
    for snapshot in CASES:
        pinned = chosen("crux", snapshot)
        plan = decide(find_policy(policy), pinned)
        by_name = {job.name: job.level for job in plan.jobs}
        found = levels(policy, pinned, order(policy, pinned))
        assert [by_name[job.name] for job in pinned.jobs] == list(found)


@pytest.mark.parametrize("policy", METHODS[Mechanism.PRIORITIES][:-1])
def test_the_order_is_the_policys_however_many_levels_there_are(policy: str) -> None:
    for snapshot in CASES:
        pinned = chosen("crux", snapshot)
        assert sorted(order(policy, pinned)) == list(range(5))
        assert order(policy, pinned) == order(policy, replace(pinned, num_levels=8))


def test_crux_compresses_any_order_downwards() -> None:
    for snapshot in CASES:
        pinned = chosen("crux", snapshot)
        for given in ((0, 1, 2, 3, 4), (4, 3, 2, 1, 0)):
            found = levels("crux", pinned, given)
            links = [{link for flow in job.flows for link in flow.hashed_path} for job in pinned.jobs]
            for place, one in enumerate(given):
                for other in given[place + 1 :]:
                    assert found[one] >= found[other] or not links[one] & links[other]
