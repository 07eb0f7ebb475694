"""Jobs too many for the model: the best initial order counts, and what is in force changes only for a gain."""

from dataclasses import replace

import numpy as np
import pytest

from benchmarks.orders import Mix
from policies.plan import ModelledWorth
from policies.snapshot import Snapshot
from policies.trainyard.component import Component, Settings
from policies.trainyard.options import InitialOrder, TrainyardOptions
from policies.trainyard.path_choice import choose_paths
from policies.trainyard.policy import trainyard
from policies.trainyard.priorities import PrioritySearch
from policies.trainyard.score import Score, Scorer, total_score

CAPACITY_ALONE = TrainyardOptions(evaluations=0, event_evaluations=0)


def search_of(snapshot: Snapshot, options: TrainyardOptions) -> PrioritySearch:
    paths = choose_paths(snapshot.jobs, {}, snapshot.links.rates_bps)
    settings = Settings(snapshot.links, snapshot.num_levels, snapshot.seed, options)
    return Component.of(snapshot.jobs, paths, {}, np.zeros(len(snapshot.links)), settings).search


def test_the_better_start_is_promised_and_kept() -> None:
    chance = np.random.default_rng(3)
    num_different = 0
    for _ in range(6):
        snapshot = Mix.draw(chance, 5, 2, 1.2).snapshot()
        alone = {
            start: search_of(snapshot, replace(CAPACITY_ALONE, initial_orders=(start,))).promise()
            for start in InitialOrder
        }
        both = search_of(snapshot, CAPACITY_ALONE)
        assert both.promise() == max(alone.values())
        assert both.best().score == max(alone.values())
        num_different += len(set(alone.values())) > 1
    assert num_different > 0


@pytest.mark.parametrize(
    ("options", "num_levels"),
    [(CAPACITY_ALONE, 2), (TrainyardOptions(evaluations=60), 2), (TrainyardOptions(evaluations=60), 8)],
)
def test_another_order_gains_the_threshold_or_what_is_in_force_stays(
    options: TrainyardOptions, num_levels: int
) -> None:
    """One job leaves and another comes, on one link: the others change places only where that gains enough."""
    chance = np.random.default_rng(5)
    min_gain = 0.002
    kinds = set()
    for _ in range(8):
        snapshot = Mix.draw(chance, 6, 1, 1.5).snapshot(num_levels)
        eager, reluctant = (worth_of_a_change(snapshot, replace(options, min_gain=gain)) for gain in (0.0, min_gain))
        is_enough = eager.decided > (1 + min_gain) * eager.in_force
        assert reluctant.decided == pytest.approx(eager.decided if is_enough else eager.in_force)
        kinds.add(is_enough)
    assert kinds == {True, False}


def worth_of_a_change(snapshot: Snapshot, options: TrainyardOptions) -> ModelledWorth:
    """Return the modelled worth when the first job leaves as the last one comes."""
    before = trainyard(replace(snapshot, jobs=snapshot.jobs[:-1]), options)
    worth = trainyard(replace(snapshot, jobs=snapshot.jobs[1:], previous=before), options).worth
    assert worth is not None
    return worth


def test_no_plan_that_leaves_jobs_without_what_they_must_get_is_better_than_one_that_does_not() -> None:
    scorer = Scorer(np.array([1.0, 1.0]), least=np.array([0.0, 0.1]), max_slowdown=20.0)
    kept, slow, lacking = (scorer.score(np.array(served)) for served in ([0.1, 0.1], [1.0, 0.049], [1.0, 0.09]))
    assert (kept.margin, kept.worth) == (0.0, 0.2)
    assert slow.margin < lacking.margin < 0.0
    for other in (slow, lacking):
        assert kept > other
        assert kept.is_better_than(other, min_gain=0.1)
        assert not other.is_better_than(kept, min_gain=0.0)


def test_a_loss_in_one_component_does_not_hide_a_gain_in_another() -> None:
    starved, poor, rich = Score(0.0, -1.0), Score(0.0, 5.0), Score(0.0, 6.0)
    assert total_score([starved, rich]).is_better_than(total_score([starved, poor]), min_gain=0.01)
    slow, slower = Score(-1.0, 9.0), Score(-2.0, 99.0)
    assert total_score([slow, poor]).is_better_than(total_score([slower, rich]), min_gain=0.01)
    assert not total_score([slow, rich]).is_better_than(total_score([slow, poor]), min_gain=0.01)
