"""Nodes stand in tiers by their distance from hosts, near what they are cabled to."""

import pytest

from controller.web.page import fabric_map as module
from controller.web.page.fabric_map import fabric_map, map_row
from topologies.fabric import Cable, Fabric
from topologies.specification import ClosSpecification, DumbbellSpecification, FatTreeSpecification, StarSpecification


def test_a_clos_has_hosts_below_tors_below_aggregation() -> None:
    fabric = ClosSpecification(
        kind="clos", tors=3, aggs=2, hosts_per_tor=2, host_link_gbps=100, uplink_gbps=100, uplinks_per_pair=2
    ).build()
    drawn = fabric_map(fabric)
    assert drawn.tiers == (tuple(f"h{n}" for n in range(6)), ("t0", "t1", "t2"), ("a0", "a1"))
    assert drawn.cables == tuple(range(len(fabric.cables)))
    assert drawn.hosts_left_out == 0


def test_a_fat_tree_has_a_core_above() -> None:
    drawn = fabric_map(FatTreeSpecification(kind="fat_tree", k=4, host_link_gbps=100, uplink_gbps=100).build())
    assert [len(tier) for tier in drawn.tiers] == [16, 8, 8, 4]


def test_dumbbell_and_star_have_one_tier_of_switches() -> None:
    dumbbell = DumbbellSpecification(kind="dumbbell", hosts_per_side=2, host_link_gbps=4, bottleneck_gbps=1).build()
    assert fabric_map(dumbbell).tiers == (("h0", "h1", "h2", "h3"), ("t0", "t1"))
    star = StarSpecification(kind="star", hosts=3, host_link_gbps=1).build()
    assert fabric_map(star).tiers == (("h0", "h1", "h2"), ("t0",))


def test_hosts_stand_below_their_switch_whatever_the_order_of_the_file() -> None:
    cables = [Cable((host, switch), 1e9, 0.0) for host, switch in zip("abcd", "yxyx", strict=True)]
    fabric = Fabric(tuple("abcd"), ("x", "y"), (*cables, Cable(("x", "y"), 1e9, 0.0)), 1)
    hosts, switches = fabric_map(fabric).tiers
    sides = {"a": "y", "b": "x", "c": "y", "d": "x"}
    assert [sides[host] for host in hosts] in (["x", "x", "y", "y"], ["y", "y", "x", "x"])
    assert [sides[host] for host in hosts][::2] == list(switches)


def test_a_large_fabric_is_drawn_without_hosts_and_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MOST_CABLES", 5)
    fabric = ClosSpecification(
        kind="clos", tors=3, aggs=2, hosts_per_tor=2, host_link_gbps=100, uplink_gbps=100
    ).build()
    drawn = fabric_map(fabric)
    assert drawn.tiers[0] == ()
    assert len(drawn.cables) == 5
    row = map_row(fabric, drawn)
    assert row["hosts_left_out"] == 6
    assert row["cables_left_out"] == len(fabric.cables) - 5
