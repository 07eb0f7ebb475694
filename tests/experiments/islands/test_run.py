"""Tenants of islands under a policy."""

import pytest

from experiments.islands.run import measure
from experiments.islands.tenants import Cluster


@pytest.mark.slow
def test_tenants_that_share_the_fabric_are_slower_than_alone() -> None:
    cluster = Cluster(islands=12, devices=8, islands_per_tenant=4, hosts_per_island=2)
    found = measure(cluster, "ecmp", seed=1)
    assert [of.kind for of in found.tenants] == ["pipeline", "data parallel", "experts"]
    assert all(0 < of.share < 1.001 for of in found.tenants)
    assert any(of.share < 0.9 for of in found.tenants)
    assert all(of.compute_s < of.alone_s for of in found.tenants)
    assert 0 < found.utilisation < found.ideal_utilisation < 1


@pytest.mark.slow
def test_the_same_seed_gives_the_same_run() -> None:
    cluster = Cluster(islands=4, devices=8, islands_per_tenant=2, hosts_per_island=2)
    assert measure(cluster, "crux", seed=2) == measure(cluster, "crux", seed=2)


@pytest.mark.slow
def test_a_tenant_alone_on_paths_without_choice_is_as_fast_as_alone() -> None:
    """One host on each island and one aggregation switch leave no choice to the policy."""
    found = measure(Cluster(islands=2, devices=4, islands_per_tenant=2, hosts_per_island=1), "echelonflow", seed=1)
    (only,) = found.tenants
    assert only.share == pytest.approx(1.0, rel=0.02)
    assert found.utilisation == pytest.approx(found.ideal_utilisation, rel=0.02)
