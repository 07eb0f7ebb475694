"""Interfaces in Mininet have names that Linux can have, each its own."""

from topologies.description import described
from topologies.graph import GraphSpecification, LinkSpecification
from topologies.mininet.interfaces import interface_names


def _names(host: str, switch: str) -> dict[tuple[str, int], str]:
    links = (LinkSpecification(ends=(host, switch), gbps=1), LinkSpecification(ends=("h1", switch), gbps=1))
    fabric = GraphSpecification(kind="graph", hosts=("h1", host), switches=(switch,), links=links).build()
    return interface_names(described(fabric))


def test_interfaces_begin_with_the_name_of_their_node() -> None:
    assert _names("h0", "s0") == {
        ("h0", 0): "h0-eth0",
        ("s0", 1): "s0-eth1",
        ("h1", 0): "h1-eth0",
        ("s0", 2): "s0-eth2",
    }


def test_where_a_name_is_too_long_all_nodes_have_their_positions() -> None:
    assert _names("h0", "leaf-of-the-first-rack") == {
        ("h0", 0): "h1-eth0",
        ("leaf-of-the-first-rack", 1): "s0-eth1",
        ("h1", 0): "h0-eth0",
        ("leaf-of-the-first-rack", 2): "s0-eth2",
    }
