import pytest
from hypothesis import given

from controller.policy.snapshot import Snapshot
from controller.policy.trainyard.options import PathRule
from controller.policy.trainyard.ways import choose_ways
from tests.policy.builders import GBPS, POWERS, make_job, make_links, scaled, snapshots


def paths(snapshot: Snapshot, rule: PathRule) -> dict[str, object]:
    sending = [job for job in snapshot.jobs if len(job.reach)]
    return {name: ways.paths for name, ways in choose_ways(sending, {}, snapshot.links.rates_bps, rule).items()}


@pytest.mark.parametrize("rule", PathRule)
@given(snapshot=snapshots(), power=POWERS)
def test_bytes_and_rates_scaled_alike_lead_nobody_elsewhere(rule: PathRule, snapshot: Snapshot, power: int) -> None:
    assert paths(scaled(snapshot, 2.0**power), rule) == paths(snapshot, rule)


@pytest.mark.parametrize(("rule", "path"), [(PathRule.SMITH, (0,)), (PathRule.SMITH_TWICE, (1,))])
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
    """Others load both links alike, but for what rounding leaves on the one that the first has chosen."""
    both = ((0,), (1,))
    for size_bytes in range(1, 40):
        first = make_job("a", [(1e8, both)], work=99.0)
        others = tuple(make_job(str(link), [(size_bytes * 1e6, ((link,),))]) for link in (0, 1))
        chosen = paths(Snapshot(0.0, make_links(GBPS, GBPS), (first, *others)), PathRule.SMITH_TWICE)
        assert chosen["a"] == ((0,),)
