from typing import Any

import pytest

from tests.topologies.builders import (
    DOUBLE_SIDED,
    FAT_TREE_8,
    TOPOLOGY,
    degrees,
    neighbours,
    num_nodes,
    refusals,
)
from topologies.specification import DoubleSidedSpecification, FatTreeSpecification

TWO_SIDES = {
    "kind": "double_sided",
    "hosts_per_pair": 2,
    "host_link_gbps": 800,
    "uplink_gbps": 400,
    "core_link_gbps": 200,
}
FAT_TREE = {"kind": "fat_tree", "k": 4, "host_link_gbps": 100, "uplink_gbps": 100}


def test_double_sided_has_the_shape_of_the_paper() -> None:
    """Crux, section 6.1: 6 ToRs, 12 aggregation and 32 core switches, each host to two ToRs by eight links."""
    assert [num_nodes(DOUBLE_SIDED, prefix) for prefix in "htac"] == [6, 6, 12, 32]
    assert len(DOUBLE_SIDED.cables) == 6 * 8 + 6 * 4 + 12 * 8
    assert [degrees(DOUBLE_SIDED, prefix) for prefix in "htac"] == [{8}, {2 * 4 + 4}, {2 + 8}, {3}]
    assert {cable.ends[0][0] + cable.ends[1][0]: cable.rate_bps for cable in DOUBLE_SIDED.cables} == {
        "ht": 100e9,
        "ta": 400e9,
        "ac": 200e9,
    }


def test_hosts_of_a_double_sided_fabric_have_half_of_their_nics_on_each_tor_of_a_pair() -> None:
    for number, host in enumerate(DOUBLE_SIDED.hosts):
        first = number // 2 * 2
        assert neighbours(DOUBLE_SIDED, host) == [f"t{first}", f"t{first + 1}"] * 4


def test_pods_of_a_double_sided_fabric_meet_in_the_core_only() -> None:
    assert neighbours(DOUBLE_SIDED, "t3")[8:] == ["a4", "a5", "a6", "a7"]
    assert neighbours(DOUBLE_SIDED, "a5") == ["t2", "t3", *(f"c{number}" for number in range(8, 16))]
    assert neighbours(DOUBLE_SIDED, "c8") == ["a1", "a5", "a9"]


def test_a_pod_may_have_more_than_one_pair_of_tors() -> None:
    fabric = DoubleSidedSpecification.model_validate(
        TWO_SIDES | {"pods": 2, "tors": 8, "aggs": 4, "cores": 4, "nics_per_host": 2, "uplinks_per_pair": 2}
    ).build()
    assert neighbours(fabric, "t2") == ["h2", "h3", "a0", "a0", "a1", "a1"]
    assert neighbours(fabric, "a2") == ["t4", "t4", "t5", "t5", "t6", "t6", "t7", "t7", "c0", "c1"]


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ({"tors": 9, "aggs": 13}, {("tors",): "expected a multiple of 6 (2 x pods)", ("aggs",): "of 3 (pods)"}),
        ({"cores": 30}, {("cores",): "expected a multiple of 4 (aggs / pods)"}),
        ({"nics_per_host": 3}, {("nics_per_host",): "multiple of 2"}),
        ({"pods": 1}, {("pods",): "greater than or equal to 2"}),
        ({"hosts_per_pair": 127}, {(): "a ToR (hosts_per_pair x nics_per_host / 2 + aggs / pods x uplinks_per_pair)"}),
        ({"cores": 2032}, {(): "an aggregation switch (tors / pods x uplinks_per_pair + cores x pods / aggs) has 510"}),
        ({"pods": 510, "tors": 1020, "aggs": 510}, {(): "a core switch (pods) has 510"}),
    ],
)
def test_shapes_that_do_not_come_out_even_are_refused(
    changes: dict[str, Any], expected: dict[tuple[str, ...], str]
) -> None:
    found = refusals(TWO_SIDES | changes)
    assert found.keys() == expected.keys()
    for location, text in expected.items():
        assert text in found[location]


@pytest.mark.parametrize("k", [2, 4, 8])
def test_fat_tree_has_as_many_nodes_and_ports_as_k_says(k: int) -> None:
    """Al-Fares et al., section 3."""
    fabric = FatTreeSpecification(kind="fat_tree", k=k, host_link_gbps=100, uplink_gbps=100).build()
    assert [num_nodes(fabric, prefix) for prefix in "htac"] == [k**3 // 4, k**2 // 2, k**2 // 2, k**2 // 4]
    assert [degrees(fabric, prefix) for prefix in "htac"] == [{1}, {k}, {k}, {k}]
    assert len(fabric.cables) == 3 * k**3 // 4


def test_pods_of_a_fat_tree_meet_once_at_every_core_switch() -> None:
    assert neighbours(FAT_TREE_8, "t5") == [*(f"h{number}" for number in range(20, 24)), "a4", "a5", "a6", "a7"]
    assert neighbours(FAT_TREE_8, "a6")[4:] == ["c8", "c9", "c10", "c11"]
    assert neighbours(FAT_TREE_8, "c15") == [f"a{4 * pod + 3}" for pod in range(8)]


@pytest.mark.parametrize(
    ("changes", "location", "expected"),
    [
        ({"k": 3}, ("k",), "multiple of 2"),
        ({"k": 0}, ("k",), "greater than or equal to 2"),
        ({"k": 66}, ("k",), "less than or equal to 64"),
        ({"k": 64, "nics_per_host": 15}, (), "a ToR (k / 2 x nics_per_host + k / 2) has 512"),
    ],
)
def test_fat_trees_that_cannot_be_are_refused(
    changes: dict[str, Any], location: tuple[str, ...], expected: str
) -> None:
    found = refusals(FAT_TREE | changes)
    assert found.keys() == {location}
    assert expected in found[location]


def test_the_largest_fat_tree_is_accepted() -> None:
    TOPOLOGY.validate_python(FAT_TREE | {"k": 64})
