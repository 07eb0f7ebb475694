import pytest
from hypothesis import given

from policies.snapshot import Snapshot
from policies.trainyard.options import PathRule
from policies.trainyard.path_choice import choose_paths
from tests.policies.builders import GBPS, POWERS, make_job, make_links, scaled, snapshots


def paths(snapshot: Snapshot, rule: PathRule) -> dict[str, object]:
    sending = [job for job in snapshot.jobs if len(job.reachable_links)]
    return {name: paths.paths for name, paths in choose_paths(sending, {}, snapshot.links.rates_bps, rule).items()}


@pytest.mark.slow
@pytest.mark.parametrize("rule", PathRule)
@given(snapshot=snapshots(), power=POWERS)
def test_bytes_and_rates_scaled_alike_lead_nobody_elsewhere(rule: PathRule, snapshot: Snapshot, power: int) -> None:
    assert paths(scaled(snapshot, 2.0**power), rule) == paths(snapshot, rule)


@pytest.mark.parametrize(("rule", "path"), [(PathRule.SMITH, (0,)), (PathRule.CRUX_TWICE, (1,))])
def test_who_chose_before_the_others_chooses_again_and_else_stays(rule: PathRule, path: tuple[int, ...]) -> None:
    """The first finds both links empty; the second can only follow it there."""
    jobs = (
        make_job("a", [(1e8, ((0,), (1,)))], work=3.0),
        make_job("b", [(1e8, ((0,),))], work=2.0),
        make_job("c", [(1e8, ((2,), (3,)))], work=1.0),
    )
    chosen = paths(Snapshot(0.0, make_links(GBPS, GBPS, GBPS, GBPS), jobs), rule)
    assert (chosen["a"], chosen["c"]) == ((path,), ((2,),))


def test_a_load_taken_away_and_put_back_moves_nobody() -> None:
    """Other jobs load both links equally, except for the rounding error on the link that the first job has chosen."""
    both = ((0,), (1,))
    for size_bytes in range(1, 40):
        first = make_job("a", [(1e8, both)], work=99.0)
        others = tuple(make_job(str(link), [(size_bytes * 1e6, ((link,),))]) for link in (0, 1))
        chosen = paths(Snapshot(0.0, make_links(GBPS, GBPS), (first, *others)), PathRule.CRUX_TWICE)
        assert chosen["a"] == ((0,),)


@pytest.mark.parametrize("other_bytes", [0.8e8, 1.2e8, 3e8, 5e8])
@pytest.mark.parametrize("rule", PathRule)
def test_flows_spread_until_others_use_more_than_own_ones_weigh(rule: PathRule, other_bytes: float) -> None:
    """The first flow finds one of the links empty; the other may follow it, or meet the other job."""
    both = ((0,), (1,))
    jobs = (
        make_job("a", [(other_bytes, ((1,),))], work=9.0, compute_s=10.0, comm_start=0.0),
        make_job("b", [(1e8, both), (1e8, both)], work=1.0, compute_s=10.0, comm_start=0.0),
    )
    chosen = paths(Snapshot(0.0, make_links(GBPS, GBPS), jobs), rule)
    assert chosen["b"] == (both if other_bytes < 1e8 * rule.own_weight else ((0,), (0,)))
