"""A mechanism apart is what the whole policy does: on paths that are given its order, and its levels for that order."""

from dataclasses import replace

import pytest

from experiments.papers.microbench.cases import Case, draw_case
from experiments.papers.microbench.mechanisms import METHODS, Mechanism, measure, on_paths, order, paths
from experiments.papers.microbench.mechanisms import levels as compressed
from experiments.papers.microbench.optimum import Optimum
from experiments.scenarios.simulated import run_on_simulator
from policies.policy import decide
from policies.registry import find_policy
from policies.snapshot import Snapshot
from workloads.scenario import MeasureWindow

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


@pytest.mark.parametrize("policy", METHODS[Mechanism.COMPRESSION][:-1])
def test_levels_for_its_own_order_are_the_policys(policy: str) -> None:
    """But for ``trainyard``, the last one, which makes no order before its levels."""
    for snapshot in CASES:
        pinned = chosen("crux", snapshot)
        plan = decide(find_policy(policy), pinned)
        by_name = {job.name: job.level for job in plan.jobs}
        found = compressed(policy, pinned, order(policy, pinned))
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
            found = compressed("crux", pinned, given)
            links = [{link for flow in job.flows for link in flow.hashed_path} for job in pinned.jobs]
            for place, one in enumerate(given):
                for other in given[place + 1 :]:
                    assert found[one] >= found[other] or not links[one] & links[other]


EASY = 0.6


@pytest.mark.parametrize("seed", [2, 3])
def test_a_case_scores_as_a_run_on_the_simulator(seed: int) -> None:
    """All jobs arrive at once, so that the run decides once; its eight levels are those of the Plan scored."""
    drawn = draw_case(seed, 2.5)
    jobs = tuple(job.model_copy(update={"arrival_s": 0.0}) for job in drawn.scenario.jobs)
    window = MeasureWindow(from_s=3.0, to_s=40.0)
    scenario = drawn.scenario.model_copy(update={"jobs": jobs, "measure": window})
    snapshot = replace(
        drawn.snapshot, num_levels=8, jobs=tuple(replace(job, arrival_s=0.0) for job in drawn.snapshot.jobs)
    )
    choice = paths("crux", snapshot)
    levels = {job.name: job.level for job in decide(find_policy("crux"), snapshot).jobs}
    optimum = Optimum(Case(drawn.load, scenario, on_paths(snapshot, choice)))
    scored = optimum.of_levels([levels[job.name] for job in snapshot.jobs]) / optimum.gpu_seconds
    result = run_on_simulator(scenario, "crux", on_progress=lambda _now, _end: None)
    (window_as_it_happened,) = result.stretches
    assert scored == pytest.approx(window_as_it_happened.gpu_utilisation, rel=1e-9)


def test_nothing_is_above_the_best_or_below_the_worst() -> None:
    case = measure(draw_case(1, EASY))
    assert [(reached.mechanism, reached.policy) for reached in case.reached] == [
        (mechanism, policy) for mechanism, policies in METHODS.items() for policy in policies
    ]
    for reached in case.reached:
        assert 0 < case.of_best(reached) <= 1
        # What trainyard makes of an order may be no compression of it.
        if (reached.mechanism, reached.policy) != (Mechanism.COMPRESSION, "trainyard"):
            assert 0 <= case.error(reached) <= 1 + 1e-9
