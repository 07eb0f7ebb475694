"""The fluid bound, fair shares and capacity against plain implementations."""

from unittest.mock import patch

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import linprog

from benchmarks.orders import Mix
from policies import jit
from policies.snapshot import Snapshot
from policies.trainyard import fluid_bound
from policies.trainyard.capacity import served_in_turn
from policies.trainyard.contention import Contention
from policies.trainyard.due_share import fair_shares, least_shares
from policies.trainyard.fluid_bound import FluidBound, WarmStart
from policies.trainyard.path_choice import choose_paths, occupied_seconds
from policies.trainyard.policy import trainyard
from tests.policies.builders import snapshots


def contention_of(snapshot: Snapshot) -> Contention:
    paths = choose_paths(snapshot.jobs, {}, snapshot.links.rates_bps)
    return Contention.of(
        snapshot.jobs, occupied_seconds([paths[job.name] for job in snapshot.jobs], len(snapshot.links))
    )


@settings(max_examples=25, deadline=None)
@given(seed=st.integers(0, 1 << 30), load=st.floats(0.3, 3), num_links=st.integers(1, 4))
def test_fluid_bound_is_near_the_optimum_of_the_linear_program(seed: int, load: float, num_links: int) -> None:
    contention = contention_of(Mix.draw(np.random.default_rng(seed), 6, num_links, load).snapshot())
    loads = contention.by_job.toarray() / contention.ideal_s[:, None]
    exact = -linprog(-contention.worth, A_ub=loads.T, b_ub=np.ones(loads.shape[1]), bounds=(0, 1)).fun
    bound = FluidBound.of(contention, 400)
    # What its prices prove: no shares can be worth more.
    dual = np.maximum(contention.worth - bound.charge, 0).sum() + bound.price.sum()
    assert dual >= exact * (1 - 1e-9)
    assert dual <= exact * 1.05
    # Of shares no step promises as much as of prices; beyond 5 % are about one of a thousand mixes.
    assert bound.share @ contention.worth == pytest.approx(exact, rel=0.1)


def test_a_warm_start_of_the_fluid_bound_saves_steps() -> None:
    """A warm start saves three of four steps after one job has halved its computation.

    This holds on average only: no single step of a subgradient method guarantees anything.
    """
    soon, afresh = zip(*(_excess_of_one_change(np.random.default_rng(seed)) for seed in range(60)), strict=True)
    assert np.mean(soon) <= 0.01
    assert np.mean(soon) <= np.mean(afresh) / 2


def _excess_of_one_change(rng: np.random.Generator) -> tuple[float, float]:
    """Return how far the bounds of a few steps exceed those of many, with and without a warm start."""
    num_links = int(rng.integers(1, 5))
    mix = Mix.draw(rng, 6, num_links, rng.uniform(0.3, 3))
    known = FluidBound.of(contention_of(mix.snapshot()), 400)
    price = np.zeros(num_links)
    price[known.scarce] = known.price
    mix.compute_s[0] /= 2
    mix.ready_s[0] /= 2
    contention = contention_of(mix.snapshot())

    def proven(bound: FluidBound) -> float:
        return float(np.maximum(contention.worth - bound.charge, 0).sum() + bound.price.sum())

    exact = proven(FluidBound.of(contention, 400))
    with patch.object(fluid_bound, "_MAX_WARM_READS", 0):
        soon = FluidBound.of(contention, 400, WarmStart(known.share, price))
    return proven(soon) / exact - 1, proven(FluidBound.of(contention, 25)) / exact - 1


@settings(max_examples=40, deadline=None)
@given(seed=st.integers(0, 1 << 30), load=st.floats(0.3, 3), num_links=st.integers(1, 4))
def test_fair_shares_are_max_min_fair(seed: int, load: float, num_links: int) -> None:
    """Nobody could have more without taking from one who has no more: each job is full, or on a full link as it is."""
    contention = contention_of(Mix.draw(np.random.default_rng(seed), 6, num_links, load).snapshot())
    loads = contention.by_job.toarray() / contention.ideal_s[:, None]
    share = fair_shares(contention)
    use = share @ loads
    assert (use <= 1 + 1e-6).all()
    for job, of_job in enumerate(share):
        full = (use >= 1 - 1e-6) & (loads[job] > 0)
        most_there = [share[loads[:, link] > 0].max() for link in np.flatnonzero(full)]
        assert of_job >= 1 - 1e-6 or any(of_job >= most - 1e-6 for most in most_there)


def test_the_least_is_a_part_of_what_is_due_and_no_endless_iteration() -> None:
    """Two equal jobs want a link twice; the fluid bound gives it to one of them, and a half of it is fair."""
    mix = Mix(np.full(2, 1e-6), np.zeros(2), np.array([2.0, 1.0]), np.full((2, 1), 10.0), np.zeros((1, 2)))
    contention = contention_of(mix.snapshot())
    bound = FluidBound.of(contention, 400)
    alone_s = np.array([10.0, 10.0])
    least = least_shares(contention, bound, alone_s, least_of_bound=0.1, longest_iteration_s=1e9)
    assert least == pytest.approx(0.1 * np.maximum(bound.share, 0.5))
    for longest_s, share in ((40.0, 0.25), (5.0, 0.5)):
        least = least_shares(contention, bound, alone_s, least_of_bound=0.1, longest_iteration_s=longest_s)
        assert least[1] == pytest.approx(share)


def test_capacity_alone_serves_in_turn() -> None:
    """Half of the link each: two jobs get all, the third nothing."""
    mix = Mix(np.ones(3), np.zeros(3), np.ones(3), np.full((3, 1), 0.5), np.zeros((1, 3)))
    contention = contention_of(mix.snapshot())
    assert served_in_turn(contention, np.array([2, 0, 1])).tolist() == [1.0, 0.0, 1.0]


@pytest.mark.slow
@settings(max_examples=15, deadline=None)
@given(snapshots())
def test_plans_are_the_same_to_the_bit_interpreted_and_compiled(snapshot: Snapshot) -> None:
    with patch.object(jit, "MIN_COMPILED_STEPS", 0):
        fast = trainyard(snapshot)
    with (
        patch.object(jit, "MIN_COMPILED_STEPS", float("inf")),
        patch.object(jit.Kernel, "for_steps", lambda kernel, _steps: kernel.interpreted),
    ):
        slow = trainyard(snapshot)
    assert slow == fast
    assert slow.worth == fast.worth
