"""Flow bundles: equivalent bundles count as one, and a flow over two links needs both at once."""

import numpy as np
import pytest

from policies.snapshot import Snapshot
from policies.trainyard.contention import Contention
from policies.trainyard.flow_bundles import FlowBundles
from policies.trainyard.fluid_model import FluidModel
from policies.trainyard.options import ModelOptions
from policies.trainyard.path_choice import choose_paths, occupied_seconds
from tests.policies.builders import GBPS, make_job, make_links
from topologies.fabric import Path


def model_of(snapshot: Snapshot) -> tuple[FlowBundles, FluidModel]:
    paths = choose_paths(snapshot.jobs, {}, snapshot.links.rates_bps)
    contention = Contention.of(
        snapshot.jobs, occupied_seconds([paths[job.name] for job in snapshot.jobs], len(snapshot.links))
    )
    bundles = FlowBundles.of(snapshot.jobs, paths, contention, snapshot.links.rates_bps)
    options = ModelOptions(num_phases=8, iterations=400, warm_up_iterations=20, max_iterations=100_000)
    return bundles, FluidModel.of(contention, bundles, 1, options)


def test_planes_on_which_jobs_meet_alike_are_one() -> None:
    """Two jobs have a flow over each of four planes; a third job meets them in two of these."""
    planes = [((first, first + 4),) for first in range(4)]
    jobs = tuple(make_job(name, [(1e9, plane) for plane in planes]) for name in "ab")
    alike, _ = model_of(Snapshot(0.0, make_links(*[GBPS] * 8), jobs))
    assert (len(alike.own_s), alike.num_links) == (2, 1)
    assert alike.seconds.tolist() == pytest.approx([8.0, 8.0])
    third = make_job("c", [(1e9, ((0,),)), (1e9, ((1,),))])
    apart, _ = model_of(Snapshot(0.0, make_links(*[GBPS] * 8), (*jobs, third)))
    assert np.diff(apart.first_bundle).tolist() == [2, 2, 1]
    assert sorted(np.diff(apart.first_entry).tolist()) == [1, 1, 1, 2, 2]
    assert apart.num_links == 3


def test_who_needs_two_links_has_the_time_in_which_both_are_free() -> None:
    """Two jobs that never meet keep a link for half of the time each, out of step; a third crosses both.

    It gets a quarter, where it would have half of either link.
    """
    one = make_job("a", [(1e9, ((0,),))], compute_s=8.0, comm_start=1.0, work=64.0)
    other = make_job("b", [(1.618e9, ((1,),))], compute_s=8.0 * 1.618, comm_start=1.0, work=64.0)
    both = make_job("c", [(4e9, ((0, 1),))], compute_s=0.01, comm_start=1.0)
    _, model = model_of(Snapshot(0.0, make_links(GBPS, GBPS), (one, other, both)))
    assert model.served(np.array([2, 1, 0])).tolist() == pytest.approx([1.0, 1.0, 0.25], abs=0.02)


@pytest.mark.parametrize("rates_bps", [(4 * GBPS, GBPS), (GBPS, 4 * GBPS)])
@pytest.mark.parametrize("flows", [[((0, 1),)], [((0, 2),), ((1, 2),)]], ids=["in a row", "side by side"])
def test_links_of_different_rates_are_not_alike(rates_bps: tuple[float, float], flows: list[tuple[Path, ...]]) -> None:
    """The same flows cross links of different rates: the slower link counts, whichever comes first."""
    jobs = tuple(
        make_job(name, [(1e8, candidates) for candidates in flows], compute_s=1.2, comm_start=0.0) for name in "ab"
    )
    bundles, model = model_of(Snapshot(0.0, make_links(*rates_bps, 9 * GBPS), jobs))
    assert bundles.seconds.max() == pytest.approx(0.8)
    assert model.served(np.array([1, 0])).tolist() == pytest.approx([1.0, 0.5], abs=0.02)
