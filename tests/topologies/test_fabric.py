import math
from dataclasses import replace

import pytest
from hypothesis import given, settings

from tests.topologies.builders import DOUBLE_SIDED, TESTBED, fabrics, shapes
from topologies.fabric import Cable, Fabric

RATE_BPS = 1e9
SMALL = Fabric(
    ("h0", "h1"),
    ("s0", "s1"),
    (
        Cable(("h0", "s0"), RATE_BPS, 1e-6),
        Cable(("s1", "s0"), RATE_BPS, 1e-6),
        Cable(("s0", "h1"), RATE_BPS, 1e-6),
        Cable(("s0", "s1"), RATE_BPS, 1e-6),
    ),
    gpus_per_host=1,
)


def test_links_are_numbered_by_cable_and_direction_and_ports_by_cable() -> None:
    ends = [
        (link.index, link.source, link.source_port, link.destination, link.destination_port) for link in SMALL.links
    ]
    assert ends == [
        (0, "h0", 0, "s0", 1),
        (1, "s0", 1, "h0", 0),
        (2, "s1", 1, "s0", 2),
        (3, "s0", 2, "s1", 1),
        (4, "s0", 3, "h1", 0),
        (5, "h1", 0, "s0", 3),
        (6, "s0", 4, "s1", 2),
        (7, "s1", 2, "s0", 4),
    ]


def test_parallel_links_are_counted_in_port_order() -> None:
    assert [SMALL.parallel_index(link) for link in (3, 6, 2, 7, 1, 4)] == [0, 1, 0, 1, 0, 0]


def test_path_has_its_nodes() -> None:
    assert SMALL.nodes_of((0, 6, 2, 4)) == ("h0", "s0", "s1", "s0", "h1")


@settings(max_examples=30, deadline=None)
@given(fabrics)
def test_reverse_is_the_other_direction_of_the_same_cable(fabric: Fabric) -> None:
    for link in fabric.links:
        back = fabric.links[fabric.reverse(link.index)]
        assert (back.source, back.source_port) == (link.destination, link.destination_port)
        assert (back.destination, back.destination_port) == (link.source, link.source_port)
        assert fabric.reverse(back.index) == link.index


@settings(max_examples=30, deadline=None)
@given(shapes)
def test_ports_count_without_gaps_from_0_at_hosts_and_1_at_switches(fabric: Fabric) -> None:
    for node, links in fabric.links_from.items():
        first = 0 if node in fabric.host_index else 1
        assert [link.source_port for link in links] == list(range(first, first + len(links)))


@pytest.mark.parametrize("fabric", [TESTBED, DOUBLE_SIDED])
def test_every_nic_has_an_address_and_a_link_of_its_own(fabric: Fabric) -> None:
    nics = [nic for host in fabric.hosts for nic in fabric.nics[host]]
    assert len(nics) == len(fabric.hosts) * 8
    assert {nic.address for nic in nics} == fabric.nic_by_address.keys()
    assert len({nic.address for nic in nics}) == len({nic.mac for nic in nics}) == len({nic.link for nic in nics})
    assert all(fabric.links[nic.link].source == nic.host for nic in nics)
    assert all(fabric.nic_by_address[nic.address] == nic for nic in nics)


def test_all_faults_of_a_fabric_are_named() -> None:
    cables = (
        Cable(("h0", "s9"), 0.0, 0.0),
        Cable(("h0", "h1"), math.nan, -1.0),
        Cable(("s0", "s0"), math.inf, math.nan),
    )
    with pytest.raises(ValueError, match="links") as raised:
        replace(SMALL, hosts=("h0", "h1", "h0"), cables=cables)
    assert str(raised.value).split("; ") == [
        "hosts[2]: expected another name than that of hosts[0], got 'h0'",
        "links[0].ends[1]: expected a host or switch of the topology, got 's9'",
        "links[1].ends: expected a switch at one end, 'h0' and 'h1' are both hosts",
        "links[2].ends[1]: expected another node than the first end, got 's0'",
        "links[0].rate_bps: expected a finite rate above 0, got 0.0",
        "links[1].rate_bps: expected a finite rate above 0, got nan",
        "links[1].delay_s: expected a finite delay from 0, got -1.0",
        "links[2].rate_bps: expected a finite rate above 0, got inf",
        "links[2].delay_s: expected a finite delay from 0, got nan",
    ]


def test_a_fabric_hangs_together() -> None:
    with pytest.raises(ValueError, match="connected graph: switch 's1' has no path to switch 's0'"):
        replace(SMALL, cables=SMALL.cables[:1] + SMALL.cables[2:3])
    with pytest.raises(ValueError, match=r"hosts\[1\]: expected a link to host 'h1', there is none"):
        replace(SMALL, cables=SMALL.cables[:2])
