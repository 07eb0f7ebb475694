from collections import Counter
from typing import Any

import pytest

from tests.topologies.builders import TESTBED, TOPOLOGY, degrees, neighbours, num_nodes, refusals
from topologies.specification import ClosSpecification, DumbbellSpecification, StarSpecification

STAR = {"kind": "star", "hosts": 3, "host_link_gbps": 100}
DUMBBELL = {"kind": "dumbbell", "hosts_per_side": 2, "host_link_gbps": 100, "bottleneck_gbps": 10}
CLOS = {"kind": "clos", "tors": 3, "aggs": 2, "hosts_per_tor": 2, "host_link_gbps": 100, "uplink_gbps": 100}


def test_star_has_all_hosts_on_one_switch() -> None:
    fabric = StarSpecification(kind="star", hosts=3, nics_per_host=2, host_link_gbps=100, gpus_per_host=4).build()
    assert fabric.hosts == ("h0", "h1", "h2")
    assert fabric.switches == ("t0",)
    assert neighbours(fabric, "t0") == ["h0", "h0", "h1", "h1", "h2", "h2"]
    assert {cable.rate_bps for cable in fabric.cables} == {50e9}
    assert fabric.gpus_per_host == 4


def test_dumbbell_has_half_of_the_hosts_on_either_side() -> None:
    fabric = DumbbellSpecification(
        kind="dumbbell", hosts_per_side=2, host_link_gbps=100, bottleneck_gbps=10, bottleneck_links=3, delay_us=2
    ).build()
    assert neighbours(fabric, "t0") == ["h0", "h1", "t1", "t1", "t1"]
    assert neighbours(fabric, "t1") == ["h2", "h3", "t0", "t0", "t0"]
    assert Counter(cable.rate_bps for cable in fabric.cables) == {100e9: 4, 10e9: 3}
    assert {cable.delay_s for cable in fabric.cables} == {2e-6}


def test_testbed_clos_has_the_shape_of_the_paper() -> None:
    """Crux, section 6.2: 1.6 Tbit/s down and up at every ToR."""
    assert [num_nodes(TESTBED, prefix) for prefix in "hta"] == [12, 6, 8]
    assert len(TESTBED.cables) == 12 * 8 + 6 * 8 * 2
    assert [degrees(TESTBED, prefix) for prefix in "hta"] == [{8}, {2 * 8 + 8 * 2}, {6 * 2}]
    assert {cable.rate_bps for cable in TESTBED.cables} == {100e9}


def test_hosts_of_a_clos_fill_the_tors_in_order() -> None:
    fabric = ClosSpecification(
        kind="clos", tors=2, aggs=2, hosts_per_tor=2, host_link_gbps=1, uplink_gbps=1, uplinks_per_pair=2
    ).build()
    assert fabric.switches == ("t0", "t1", "a0", "a1")
    assert neighbours(fabric, "t0") == ["h0", "h1", "a0", "a0", "a1", "a1"]
    assert neighbours(fabric, "t1") == ["h2", "h3", "a0", "a0", "a1", "a1"]
    assert neighbours(fabric, "a1") == ["t0", "t0", "t1", "t1"]


@pytest.mark.parametrize(
    ("document", "expected"),
    [
        (
            STAR | {"hosts": 255, "nics_per_host": 2},
            "expected at most 509 ports on a switch, t0 (hosts x nics_per_host) has 510",
        ),
        (
            DUMBBELL | {"hosts_per_side": 500, "bottleneck_links": 10},
            "expected at most 509 ports on a switch,"
            " either switch (hosts_per_side x nics_per_host + bottleneck_links) has 510",
        ),
        (
            CLOS | {"hosts_per_tor": 254, "aggs": 128, "uplinks_per_pair": 2},
            "expected at most 509 ports on a switch,"
            " a ToR (hosts_per_tor x nics_per_host + aggs x uplinks_per_pair) has 510",
        ),
        (
            CLOS | {"tors": 170, "uplinks_per_pair": 3},
            "expected at most 509 ports on a switch, an aggregation switch (tors x uplinks_per_pair) has 510",
        ),
        (
            CLOS | {"tors": 509, "hosts_per_tor": 129},
            "expected at most 65,536 hosts, tors x hosts_per_tor makes 65,661",
        ),
    ],
)
def test_what_has_no_ports_or_addresses_is_refused_with_the_keys(document: dict[str, Any], expected: str) -> None:
    assert refusals(document) == {(): expected}


def test_hosts_and_ports_are_refused_at_once() -> None:
    with pytest.raises(ValueError, match=r"(?s)a ToR .* has 601.*an aggregation switch .* has 600.* makes 360,000"):
        TOPOLOGY.validate_python(CLOS | {"tors": 600, "hosts_per_tor": 600, "aggs": 1})


@pytest.mark.parametrize(
    "document", [STAR | {"hosts": 509}, CLOS | {"tors": 509, "hosts_per_tor": 128}, CLOS | {"nics_per_host": 253}]
)
def test_what_just_fits_is_accepted(document: dict[str, Any]) -> None:
    TOPOLOGY.validate_python(document)
