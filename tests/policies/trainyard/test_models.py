"""The fluid bound and the fluid model against plain ones."""

from unittest.mock import patch

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import linprog

from benchmarks.orders import Mix
from policies import compiled
from policies.flows import FlowGroup, FlowKey
from policies.profile import Profile
from policies.snapshot import Snapshot
from policies.trainyard import fluid_bound
from policies.trainyard.contention import Contention
from policies.trainyard.fluid_bound import FluidBound, Start
from policies.trainyard.fluid_model import FluidModel
from policies.trainyard.options import ModelOptions
from policies.trainyard.order import served_in_turn
from policies.trainyard.policy import trainyard
from policies.trainyard.strands import Strands
from policies.trainyard.ways import choose_ways, occupied
from policies.windows import MOST_TRANSFERS, Windows
from tests.policies.builders import make_job, snapshots


def contention_of(snapshot: Snapshot) -> Contention:
    ways = choose_ways(snapshot.jobs, {}, snapshot.links.rates_bps)
    return Contention.of(snapshot.jobs, occupied([ways[job.name] for job in snapshot.jobs], len(snapshot.links)))


def strands_of(snapshot: Snapshot) -> Strands:
    ways = choose_ways(snapshot.jobs, {}, snapshot.links.rates_bps)
    return Strands.of(snapshot.jobs, ways, contention_of(snapshot), snapshot.links.rates_bps)


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


def test_fluid_bound_goes_on_from_that_of_almost_the_same_jobs() -> None:
    """One job computes half as long: what was known of the others spares three steps of four.

    Not in each of them: subgradients promise nothing about any one step.
    """
    soon, afresh = zip(*(_excess_of_one_change(np.random.default_rng(seed)) for seed in range(60)), strict=True)
    assert np.mean(soon) <= 0.01
    assert np.mean(soon) <= np.mean(afresh) / 2


def _excess_of_one_change(rng: np.random.Generator) -> tuple[float, float]:
    """How far above that of many steps the bounds of few are, gone on and afresh."""
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
    with patch.object(fluid_bound, "_MOST_READ", 0):
        soon = FluidBound.of(contention, 400, Start(known.share, price))
    return proven(soon) / exact - 1, proven(FluidBound.of(contention, 25)) / exact - 1


@pytest.mark.slow
@settings(max_examples=10, deadline=None)
@given(seed=st.integers(0, 1 << 30), load=st.floats(0.3, 2), num_links=st.integers(1, 4))
def test_fluid_model_agrees_with_a_plain_one(seed: int, load: float, num_links: int) -> None:
    mix = Mix.draw(np.random.default_rng(seed), 5, num_links, load)
    snapshot = mix.snapshot()
    contention = contention_of(snapshot)
    options = ModelOptions(num_phases=6, iterations=60, warm_up_iterations=10, most_iterations=100_000)
    model = FluidModel.of(contention, strands_of(snapshot), 1, options)
    with patch.object(Contention, "lasting", contention.in_fabric):
        whole = FluidModel.of(contention, strands_of(snapshot), 1, options)
    for urgency in (np.arange(5), np.array([2, 0, 1, 1, 0])):
        served = model.served(urgency)
        assert whole.served(urgency) == pytest.approx(served)
        assert served @ contention.worth == pytest.approx(mix.worth(urgency), rel=0.05)


def test_capacity_alone_serves_in_turn() -> None:
    """Half of the link each: two jobs get all, the third nothing."""
    mix = Mix(np.ones(3), np.zeros(3), np.ones(3), np.full((3, 1), 0.5), np.zeros((1, 3)))
    contention = contention_of(mix.snapshot())
    assert served_in_turn(contention, np.array([2, 0, 1])).tolist() == [1.0, 0.0, 1.0]


@pytest.mark.slow
@settings(max_examples=15, deadline=None)
@given(snapshots())
def test_plans_are_the_same_to_the_bit_interpreted_and_compiled(snapshot: Snapshot) -> None:
    with patch.object(compiled, "LONG_STEPS", 0):
        fast = trainyard(snapshot)
    with (
        patch.object(compiled, "LONG_STEPS", float("inf")),
        patch.object(compiled.Loop, "of", lambda loop, _steps: loop.interpreted),
    ):
        slow = trainyard(snapshot)
    assert slow == fast
    assert slow.worth == fast.worth


def group(offsets_s: list[float]) -> FlowGroup:
    (made,) = make_job("a", [(1.0, ((0,),))] * len(offsets_s)).flow_groups
    flows = tuple(
        type(flow)(FlowKey("a", "g", number), flow.five_tuple, 1.0, offset_s, flow.candidates, flow.hashed_path)
        for number, (flow, offset_s) in enumerate(zip(made.flows, offsets_s, strict=True))
    )
    return FlowGroup("g", flows)


def test_a_coflow_has_the_rest_of_the_computation() -> None:
    windows = Windows.of([group([3.0, 3.0])], Profile(4.0, 0.25, 1.0))
    assert (windows.transfer_of.tolist(), windows.release_s.tolist(), windows.due_s.tolist()) == ([0, 0], [1.0], [4.0])


def test_offsets_in_any_order_stagger_releases_and_needs() -> None:
    windows = Windows.of([group([]), group([2.0, 0.0, 1.0])], Profile(4.0, 0.25, 1.0))
    assert windows.transfer_of.tolist() == [2, 0, 1]
    assert windows.group_of.tolist() == [1, 1, 1]
    assert windows.release_s.tolist() == [1.0, 2.0, 3.0]
    assert windows.due_s.tolist() == [2.0, 3.0, 4.0]


def test_offsets_beyond_the_computation_leave_no_window() -> None:
    windows = Windows.of([group([0.0, 9.0])], Profile(4.0, 0.25, 1.0))
    assert windows.release_s.tolist() == [1.0, 4.0]
    assert windows.due_s.tolist() == [1.0, 4.0]


def test_many_offsets_are_taken_together_with_their_neighbours() -> None:
    windows = Windows.of([group([float(number) for number in range(20)])], Profile(40.0, 0.0, 1.0))
    assert len(windows.group_of) == MOST_TRANSFERS
    assert windows.transfer_of.tolist() == sorted(windows.transfer_of.tolist())
    assert (windows.due_s > windows.release_s).all()
