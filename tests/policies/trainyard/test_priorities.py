"""The search for priorities keeps the best initial order, and changes what is in force only for a gain."""

from dataclasses import replace
from functools import partial
from unittest.mock import patch

import numpy as np
import pytest

from benchmarks.orders import Mix
from policies.plan import ModelledWorth
from policies.snapshot import Snapshot
from policies.trainyard.contention import Contention
from policies.trainyard.evaluator import Evaluator, Score, total_score
from policies.trainyard.flow_bundles import FlowBundles
from policies.trainyard.fluid_bound import FluidBound
from policies.trainyard.fluid_model import FluidModel
from policies.trainyard.options import InitialOrder, TrainyardOptions
from policies.trainyard.path_choice import choose_paths, occupied_seconds
from policies.trainyard.policy import trainyard
from policies.trainyard.priorities import PrioritySearch
from tests.policies.builders import GBPS, make_job, make_links
from tests.policies.trainyard.test_models import contention_of


def search_of(snapshot: Snapshot, options: TrainyardOptions) -> PrioritySearch:
    rates_bps = snapshot.links.rates_bps
    paths = choose_paths(snapshot.jobs, {}, rates_bps)
    on_links = occupied_seconds([paths[job.name] for job in snapshot.jobs], len(snapshot.links))
    contention = Contention.of(snapshot.jobs, on_links)
    bound = FluidBound.of(contention, options.bound_steps)
    bundles = partial(FlowBundles.of, snapshot.jobs, paths, contention, rates_bps)
    return PrioritySearch(
        contention,
        bound,
        Evaluator(contention, bound, bundles, snapshot.seed, options),
        on_links,
        snapshot.links.has_levels,
        snapshot.num_levels,
        snapshot.seed,
        options,
    )


@pytest.mark.parametrize("evaluations", [0, 1, 48])
def test_the_better_start_is_promised_and_kept(evaluations: int) -> None:
    chance = np.random.default_rng(3)
    options = TrainyardOptions(evaluations=evaluations, min_evaluations=1)
    num_different = 0
    for _ in range(6):
        snapshot = Mix.draw(chance, 5, 2, 1.2).snapshot()
        alone = {
            start: search_of(snapshot, replace(options, initial_orders=(start,))).promise() for start in InitialOrder
        }
        both = search_of(snapshot, options)
        assert both.promise() == max(alone.values())
        assert both.best().score >= max(alone.values())
        num_different += len(set(alone.values())) > 1
    assert num_different > 0


@pytest.mark.slow
@pytest.mark.parametrize("num_levels", [2, 8])
def test_another_order_gains_the_threshold_or_what_is_in_force_stays(num_levels: int) -> None:
    """One job leaves and another comes, on one link: the others change places only where that gains enough."""
    chance = np.random.default_rng(5)
    min_gain = 0.002
    kinds = set()
    for _ in range(8):
        snapshot = Mix.draw(chance, 6, 1, 1.5).snapshot(num_levels)
        eager, reluctant = (worth_of_a_change(snapshot, TrainyardOptions(min_gain=gain)) for gain in (0.0, min_gain))
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


def test_what_a_job_misses_of_half_its_share_in_the_bound_counts_twice() -> None:
    """Two jobs overload a link; without runs of the model nothing counts twice."""
    jobs = tuple(make_job(name, [(1e8, ((0,),))], compute_s=1.2, comm_start=0.0) for name in "ab")
    snapshot = Snapshot(0.0, make_links(GBPS), jobs)
    served = np.array([0.6, 0.1])
    for min_bound_share, evaluations in ((0.0, 10), (0.5, 10), (0.5, 0)):
        made = search_of(snapshot, TrainyardOptions(min_bound_share=min_bound_share, evaluations=evaluations))
        missed = np.maximum(min_bound_share * made.bound.share - served, 0.0) * (evaluations > 0)
        assert missed.any() == (min_bound_share > 0 and evaluations > 0)
        assert made.evaluator.score(served) == pytest.approx((0.0, (served - missed) @ made.contention.worth))


@pytest.mark.parametrize("num_known", [0, 1, 15])
def test_no_search_runs_the_model_oftener_than_its_budget_allows(num_known: int) -> None:
    """The budget: one for the order, half of one for levels, and one for levels of new jobs."""
    options = TrainyardOptions(evaluations=40)
    snapshot = Mix.draw(np.random.default_rng(2), 16, 4, 1.2).snapshot()
    before = trainyard(replace(snapshot, jobs=snapshot.jobs[:num_known]), options)
    with patch.object(FluidModel, "served", autospec=True, side_effect=FluidModel.served) as served:
        trainyard(replace(snapshot, previous=before), options)
    assert 20 < served.call_count < (2.5 if num_known else 1.5) * options.evaluations + 8


def test_bundles_are_not_built_where_no_run_is_affordable() -> None:
    snapshot = Mix.draw(np.random.default_rng(2), 16, 4, 1.2).snapshot()
    contention = contention_of(snapshot)
    evaluator = Evaluator(
        contention,
        FluidBound.of(contention, 100),
        lambda: pytest.fail("bundles were built"),
        snapshot.seed,
        TrainyardOptions(model_steps=1e4),
    )
    assert evaluator.evaluations == 0


def test_no_order_that_slows_jobs_down_too_much_is_better_than_one_that_does_not() -> None:
    """However much of their shares in the bound the jobs miss in that: more than what they compute counts twice."""
    jobs = tuple(make_job(name, [(1e8, ((0,),))], compute_s=1.2, comm_start=0.0) for name in "ab")
    evaluator = search_of(Snapshot(0.0, make_links(GBPS), jobs), TrainyardOptions(max_slowdown=20.0)).evaluator
    kept, broken = evaluator.score(np.array([0.06, 0.06])), evaluator.score(np.array([1.0, 0.049]))
    assert kept.worth < 0 < broken.worth
    assert kept > broken
    assert kept.is_better_than(broken, min_gain=10.0)
    assert not broken.is_better_than(kept, min_gain=0.0)


def test_a_loss_in_one_component_does_not_hide_a_gain_in_another() -> None:
    starved, poor, rich = Score(0.0, -1.0), Score(0.0, 5.0), Score(0.0, 6.0)
    assert total_score([starved, rich]).is_better_than(total_score([starved, poor]), min_gain=0.01)
    slow, slower = Score(-1.0, 9.0), Score(-2.0, 99.0)
    assert total_score([slow, poor]).is_better_than(total_score([slower, rich]), min_gain=0.01)
    assert not total_score([slow, rich]).is_better_than(total_score([slow, poor]), min_gain=0.01)
