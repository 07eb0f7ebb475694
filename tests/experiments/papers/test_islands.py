import pytest

from experiments.islands.run import ClusterMeasured, TenantMeasured
from experiments.islands.tenants import Cluster
from experiments.papers.evaluation import InvalidInputError
from experiments.papers.islands import POLICIES, Islands, IslandsCase
from tests.experiments.papers.combining import combine_all

CLUSTER = Cluster(16, 32, 8)


def run(*shares: float) -> ClusterMeasured:
    kinds = ("pipeline", "experts")
    measured = (
        TenantMeasured(f"{kind} {number}", kind, 10, 1.0, 2.0, share)
        for number, (kind, share) in enumerate(zip(kinds, shares, strict=True))
    )
    return ClusterMeasured(tuple(measured), sum(shares) / 4, 0.5)


def test_shares_are_means_over_seeds_and_tenants() -> None:
    results = {
        IslandsCase("ecmp", 1, CLUSTER): run(0.5, 0.7),
        IslandsCase("crux", 1, CLUSTER): run(0.9, 0.8),
        IslandsCase("ecmp", 2, CLUSTER): run(0.7, 0.5),
        IslandsCase("crux", 2, CLUSTER): run(0.9, 0.6),
    }
    measured = combine_all(Islands(), results)
    assert [of.policy for of in measured] == ["ecmp", "crux"]
    assert measured[0].mean_share() == pytest.approx(0.6)
    assert measured[1].mean_share("experts") == pytest.approx(0.7)
    assert measured[1].worst_share == 0.6
    described = Islands().json_object(measured[1])
    assert described["tenants"][1]["shares"] == (0.8, 0.6)  # type: ignore[index]
    assert described["tenants"][1]["share"] == pytest.approx(0.7)  # type: ignore[index]
    policies, tenants = Islands().findings(measured).tables
    space = "\N{NO-BREAK SPACE}"
    assert policies.rows[1] == ("crux", *(f"{of}{space}%" for of in ("90.0", "70.0", "80.0", "60.0", "40.0", "50.0")))
    assert [row[0] for row in tenants.rows] == ["pipeline 0", "experts 1"]
    assert tenants.rows[0][-2:] == (f"60.0{space}%", f"90.0{space}%")
    assert all(len(row) == len(table.columns) for table in (policies, tenants) for row in table.rows)


def test_cases_go_seed_by_seed() -> None:
    cases = Islands(islands=16, devices=64, seeds=2).cases()
    assert [(case.seed, case.policy) for case in cases] == [(seed, of) for seed in (1, 2) for of in POLICIES]
    assert {case.cluster for case in cases} == {Cluster(16, 64, 8)}
    assert [case.policy for case in Islands(seeds=1, policy=("crux", "crux")).cases()] == ["crux"]


@pytest.mark.parametrize("options", [{"islands": 12}, {"devices": 48}, {"policy": ("none",)}])
def test_wrong_options_are_refused(options: dict[str, object]) -> None:
    with pytest.raises(InvalidInputError, match=f"--{next(iter(options))}"):
        Islands(**options)  # type: ignore[arg-type]
