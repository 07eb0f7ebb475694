"""The fluid engine: cases computed by hand, and properties that hold at every event."""

from collections.abc import Callable, Sequence

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from policies.enforcement import Allocator
from policies.model.bundles import Bundles
from policies.model.picoseconds import NEVER_PS, PS_PER_S
from policies.rates.network import Network
from simulator.fluid import NO_BUNDLE, Fluid, allocation
from tests.policies.rates.references import Case, plain_madd, plain_max_min, plain_order_greedy
from topologies.fabric import Path

GBPS = 1e9
GB = 1e9 / 8
"""Bytes that a link of GBPS carries in a second."""


def make_bundles(
    capacities_bps: Sequence[float],
    paths: Sequence[Path],
    *,
    weights: Sequence[float] | None = None,
    tiers: Sequence[int] | None = None,
    latency_s: float = 0.0,
) -> Bundles:
    number = len(paths)
    return Bundles(
        Network.of(np.array(capacities_bps), paths),
        np.array(weights or [1.0] * number),
        np.array(tiers or [0] * number),
        np.zeros(number, dtype=np.int64),
        np.full(number, round(latency_s * PS_PER_S)),
    )


def make_fluid(bundles: Bundles, allocator: Allocator = Allocator.MAX_MIN) -> Fluid:
    return Fluid(bundles, allocation(allocator))


def ends_s(fluid: Fluid, starts: dict[int, tuple[float, float]]) -> dict[int, float]:
    """Return when each bundle arrives, given its start in seconds and its bytes."""
    ends: dict[int, float] = {}
    pending = sorted((round(at_s * PS_PER_S), bundle, size) for bundle, (at_s, size) in starts.items())
    while pending or len(ends) < len(starts):
        while pending and pending[0][0] <= fluid.now_ps:
            _, bundle, size = pending.pop(0)
            fluid.start(np.array([bundle]), np.array([size]))
        for bundle in fluid.run(pending[0][0] if pending else NEVER_PS):
            ends[bundle] = fluid.now_ps / PS_PER_S
    return ends


def test_two_levels_on_one_link() -> None:
    """The less urgent waits while the more urgent sends, and has the link alone before and after."""
    fluid = make_fluid(make_bundles([GBPS], [(0,), (0,)], tiers=[1, 0]))
    assert ends_s(fluid, {0: (0.0, 3 * GB), 1: (1.0, 2 * GB)}) == {0: 5.0, 1: 3.0}


def test_two_flows_of_one_level_share_a_link() -> None:
    fluid = make_fluid(make_bundles([GBPS], [(0,), (0,)]))
    assert ends_s(fluid, {0: (0.0, 1 * GB), 1: (0.0, 2 * GB)}) == {0: 2.0, 1: 3.0}


def test_three_flows_on_two_links_max_min() -> None:
    """Links of 2 and 1: the flow on both has 1/2, the one beside it on the first 3/2, the one on the second 1/2."""
    fluid = make_fluid(make_bundles([2 * GBPS, GBPS], [(0, 1), (0,), (1,)]))
    # The second ends at 2 and changes nothing for the others; the third ends at 4, then the first has the second link.
    assert ends_s(fluid, {0: (0.0, 3 * GB), 1: (0.0, 3 * GB), 2: (0.0, 2 * GB)}) == {1: 2.0, 2: 4.0, 0: 5.0}


def test_the_end_of_what_was_sent_arrives_a_latency_later_and_occupies_no_link_meanwhile() -> None:
    fluid = make_fluid(make_bundles([GBPS], [(0,), (0,)], latency_s=0.25))
    assert ends_s(fluid, {0: (0.0, 1 * GB), 1: (1.0, 1 * GB)}) == {0: 1.25, 1: 2.25}


def test_a_bundle_counts_as_all_its_flows() -> None:
    """Three of four flows in one bundle: three quarters of the link."""
    fluid = make_fluid(make_bundles([GBPS], [(0,), (0,)], weights=[3.0, 1.0]))
    assert ends_s(fluid, {0: (0.0, 3 * GB), 1: (0.0, 1 * GB)}) == {0: 4.0, 1: 4.0}


def test_nothing_to_send_arrives_after_its_latency() -> None:
    assert ends_s(make_fluid(make_bundles([GBPS], [(0,)], latency_s=0.5)), {0: (1.0, 0.0)}) == {0: 1.5}


def test_a_bundle_that_is_paused_keeps_what_it_has_left_and_leaves_its_links_to_others() -> None:
    fluid = make_fluid(make_bundles([GBPS], [(0,), (0,)]))
    fluid.start(np.array([0, 1]), np.array([2 * GB, 2 * GB]))
    fluid.run(2 * PS_PER_S)
    fluid.pause(np.array([0]))
    assert (fluid.run(NEVER_PS), fluid.now_ps, fluid.active.tolist()) == ([1], 3 * PS_PER_S, [])
    fluid.run(7 * PS_PER_S)
    fluid.resume(np.array([0]))
    assert (fluid.run(NEVER_PS), fluid.now_ps) == ([0], 8 * PS_PER_S)


def test_what_is_paused_is_so_in_other_bundles_too() -> None:
    """Half of the rest of a bundle of two flows moves to another link; the other half stays."""
    fluid = make_fluid(make_bundles([GBPS, GBPS], [(0,)], weights=[2.0]))
    fluid.start(np.array([0]), np.array([2 * GB]))
    fluid.run(PS_PER_S)
    fluid.pause(np.array([0]))
    fluid.replace_bundles(make_bundles([GBPS, GBPS], [(0,), (1,)]), np.array([0, 0]))
    fluid.resume(np.array([1]))
    assert (fluid.run(4 * PS_PER_S), fluid.now_ps) == ([1], 1.5 * PS_PER_S)
    with pytest.raises(ValueError, match="bundle 0: it is under way"):
        fluid.replace_bundles(make_bundles([GBPS], [(0,)]), np.array([1]))
    fluid.resume(np.array([0]))
    assert (fluid.run(NEVER_PS), fluid.now_ps) == ([0], 2 * PS_PER_S)


def test_a_link_without_capacity_holds_its_flows_for_good() -> None:
    fluid = make_fluid(make_bundles([GBPS, 0.0], [(0,), (0, 1)]))
    fluid.start(np.array([0, 1]), np.array([GB, GB]))
    assert (fluid.run(NEVER_PS), fluid.now_ps) == ([0], PS_PER_S)
    assert (fluid.run(5 * PS_PER_S), fluid.active.tolist()) == ([], [1])


def test_minimum_allocation_for_desired_duration_ends_a_group_together() -> None:
    fluid = make_fluid(make_bundles([GBPS, GBPS], [(0,), (1,), (1,)], tiers=[0, 0, 1]), Allocator.MADD)
    assert ends_s(fluid, {0: (0.0, 4 * GB), 1: (0.0, 1 * GB), 2: (0.0, 3 * GB)}) == {0: 4.0, 1: 4.0, 2: 4.0}


def test_another_order_from_now_on() -> None:
    fluid = make_fluid(make_bundles([GBPS], [(0,), (0,)], tiers=[0, 1]), Allocator.ORDER_GREEDY)
    fluid.start(np.array([0, 1]), np.array([2 * GB, 2 * GB]))
    assert fluid.run(PS_PER_S) == []
    fluid.reorder(np.array([1, 0]), np.zeros(2))
    assert (fluid.run(NEVER_PS), fluid.now_ps) == ([1], 3 * PS_PER_S)


def test_flows_under_way_go_on_in_other_bundles_on_other_paths() -> None:
    """One of two flows on a link moves to another link, which it has for itself."""
    fluid = make_fluid(make_bundles([GBPS, 2 * GBPS], [(0,)], weights=[2.0]))
    fluid.start(np.array([0]), np.array([2 * GB]))
    fluid.run(PS_PER_S)
    after = make_bundles([GBPS, 2 * GBPS], [(0,), (0,), (1,)])
    fluid.replace_bundles(after, np.array([NO_BUNDLE, 0, 0]))
    assert fluid.run(NEVER_PS) == [2]
    assert fluid.now_ps == 1.25 * PS_PER_S
    assert fluid.run(NEVER_PS) == [1]
    assert fluid.now_ps == 1.5 * PS_PER_S


def test_no_flow_under_way_gets_lost() -> None:
    fluid = make_fluid(make_bundles([GBPS], [(0,)], weights=[2.0]))
    fluid.start(np.array([0]), np.array([GB]))
    with pytest.raises(ValueError, match="bundle 0: it is under way"):
        fluid.replace_bundles(make_bundles([GBPS], [(0,)]), np.array([0]))


@st.composite
def loads(draw: st.DrawFn) -> tuple[list[float], list[Path], list[int], list[tuple[float, float]], Allocator]:
    """Capacities, paths, tiers, and the start and bytes of each of up to eight flows on five links."""
    path = st.lists(st.integers(0, 4), min_size=1, max_size=3, unique=True).map(tuple)
    paths = draw(st.lists(path, min_size=1, max_size=8))
    each = {"min_size": len(paths), "max_size": len(paths)}
    capacities = draw(st.lists(st.sampled_from([1e9, 2e9, 3e9]), min_size=5, max_size=5))
    tiers = draw(st.lists(st.integers(0, 2), **each))
    starts = draw(st.lists(st.tuples(st.integers(0, 3).map(float), st.integers(1, 5).map(lambda n: n * GB)), **each))
    return capacities, paths, tiers, starts, draw(st.sampled_from(sorted(Allocator)))


@pytest.mark.slow
@given(loads())
def test_bytes_and_capacities_are_kept_at_every_event(
    load: tuple[list[float], list[Path], list[int], list[tuple[float, float]], Allocator],
) -> None:
    capacities, paths, tiers, starts, allocator = load
    fluid = make_fluid(make_bundles(capacities, paths, tiers=tiers), allocator)
    started = np.zeros(len(paths))
    for at_s in range(100):
        due = [flow for flow, (start_s, _) in enumerate(starts) if start_s == at_s]
        fluid.start(np.array(due, dtype=np.int64), np.array([starts[flow][1] for flow in due]))
        started[due] = [starts[flow][1] for flow in due]
        while fluid.now_ps < (at_s + 1) * PS_PER_S:
            fluid.run((at_s + 1) * PS_PER_S)
            used = np.zeros(len(capacities))
            sent = np.zeros(len(capacities))
            for flow, path in enumerate(paths):
                used[list(path)] += fluid.rates_bps[flow]
                sent[list(path)] += started[flow] - fluid.settled_bytes()[flow]
            assert (used <= np.array(capacities) * (1 + 1e-9)).all()
            assert fluid.carried_bytes().sum(axis=1) == pytest.approx(sent, abs=1e-2)
    assert not fluid.active.size


@given(loads(), st.randoms(use_true_random=False))
def test_the_order_of_flows_and_links_does_not_matter(
    load: tuple[list[float], list[Path], list[int], list[tuple[float, float]], Allocator], chance: object
) -> None:
    """With explicit paths, under max-min, which has no ties."""
    capacities, paths, tiers, starts, _ = load
    permutation, relabelled = list(range(len(paths))), list(range(len(capacities)))
    chance.shuffle(permutation)  # type: ignore[attr-defined]
    chance.shuffle(relabelled)  # type: ignore[attr-defined]
    ends = ends_s(make_fluid(make_bundles(capacities, paths, tiers=tiers)), dict(enumerate(starts)))
    other = make_bundles(
        [capacities[relabelled.index(link)] for link in range(len(capacities))],
        [tuple(relabelled[link] for link in paths[flow]) for flow in permutation],
        tiers=[tiers[flow] for flow in permutation],
    )
    other_ends = ends_s(make_fluid(other), {new: starts[old] for new, old in enumerate(permutation)})
    for new, old in enumerate(permutation):
        assert other_ends[new] == pytest.approx(ends[old], abs=1e-9)


@given(loads())
def test_setting_rates_only_where_an_event_reaches_is_setting_all(
    load: tuple[list[float], list[Path], list[int], list[tuple[float, float]], Allocator],
) -> None:
    capacities, paths, tiers, starts, allocator = load
    ends = ends_s(make_fluid(make_bundles(capacities, paths, tiers=tiers), allocator), dict(enumerate(starts)))
    assert ends == pytest.approx(plain_ends_s(capacities, paths, tiers, starts, PLAIN[allocator]), abs=1e-9)


def plain_ends_s(
    capacities: list[float],
    paths: list[Path],
    tiers: list[int],
    starts: list[tuple[float, float]],
    allocate: Callable[[Case], list[float]],
) -> dict[int, float]:
    """A plain, slow engine that recomputes everything at every event."""
    now_s, left, ends = 0.0, dict[int, float](), dict[int, float]()
    while len(ends) < len(paths):
        for flow, (start_s, size_bytes) in enumerate(starts):
            if start_s == now_s:
                left[flow] = size_bytes
        in_tiers = [[flow for flow in sorted(left) if tiers[flow] == tier] for tier in range(3)]
        values = [left.get(flow, 0.0) if allocate is not plain_max_min else 1.0 for flow in range(len(paths))]
        rates_bps = allocate(Case(capacities, paths, in_tiers, values))
        rate_of = dict(zip((flow for tier in in_tiers for flow in tier), rates_bps, strict=True))
        due_s = {flow: now_s + left[flow] * 8 / rate for flow, rate in rate_of.items() if rate > 1e-3}
        next_s = min([*due_s.values(), *(start_s for start_s, _ in starts if start_s > now_s)])
        for flow, rate in rate_of.items():
            left[flow] -= rate / 8 * (next_s - now_s)
        now_s = next_s
        for flow in [flow for flow, end_s in due_s.items() if end_s <= now_s + 1e-12]:
            ends[flow] = now_s
            del left[flow]
    return ends


PLAIN = {
    Allocator.MAX_MIN: plain_max_min,
    Allocator.MADD: plain_madd,
    Allocator.ECHELON_MADD: plain_madd,  # all are due at once
    Allocator.ORDER_GREEDY: plain_order_greedy,
}
