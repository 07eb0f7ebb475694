"""Fabrics shared by several tests, a strategy for random ones, and the problems of invalid ones."""

from random import Random
from typing import Any

import pytest
from hypothesis import strategies as st
from pydantic import TypeAdapter, ValidationError

from tests.topologies.renumbering import renumbered
from topologies.fabric import Fabric
from topologies.specification import ClosSpecification, DoubleSidedSpecification, FatTreeSpecification, Topology

TOPOLOGY: TypeAdapter[Topology] = TypeAdapter(Topology)

TESTBED = ClosSpecification(
    kind="clos",
    tors=6,
    aggs=8,
    hosts_per_tor=2,
    nics_per_host=8,
    host_link_gbps=800,
    uplink_gbps=100,
    uplinks_per_pair=2,
).build()
DOUBLE_SIDED = DoubleSidedSpecification(
    kind="double_sided", hosts_per_pair=2, host_link_gbps=800, uplink_gbps=400, core_link_gbps=200
).build()
FAT_TREE_8 = FatTreeSpecification(kind="fat_tree", k=8, host_link_gbps=100, uplink_gbps=100).build()

Location = tuple[str | int, ...]


def refusals(document: dict[str, Any]) -> dict[Location, str]:
    """Return the problems of a topology by location."""
    with pytest.raises(ValidationError) as raised:
        TOPOLOGY.validate_python(document)
    return {fault["loc"][1:]: fault["msg"] for fault in raised.value.errors()}


def degrees(fabric: Fabric, prefix: str) -> set[int]:
    """Return the numbers of links at the nodes with this prefix."""
    return {len(links) for node, links in fabric.links_from.items() if node.startswith(prefix)}


def num_nodes(fabric: Fabric, prefix: str) -> int:
    return sum(node.startswith(prefix) for node in fabric.links_from)


def neighbours(fabric: Fabric, node: str) -> list[str]:
    """Return the neighbours of a node in the order of the links to them."""
    return [link.destination for link in fabric.links_from[node]]


def _regular_documents() -> st.SearchStrategy[dict[str, Any]]:
    few = st.integers(1, 3)
    hosts = {"nics_per_host": few, "host_link_gbps": st.just(100)}
    uplinks = {"uplink_gbps": st.just(100), "uplinks_per_pair": st.integers(1, 2)}
    return st.one_of(
        st.fixed_dictionaries({"kind": st.just("star"), "hosts": few} | hosts),
        st.fixed_dictionaries(
            {"kind": st.just("dumbbell"), "hosts_per_side": few, "bottleneck_gbps": few, "bottleneck_links": few}
            | hosts
        ),
        st.fixed_dictionaries(
            {"kind": st.just("clos"), "tors": few, "aggs": few, "hosts_per_tor": few} | hosts | uplinks
        ),
        st.fixed_dictionaries(
            {
                "kind": st.just("double_sided"),
                "pods": st.just(2),
                "tors": st.sampled_from([4, 8]),
                "aggs": st.just(4),
                "cores": st.sampled_from([2, 4]),
                "hosts_per_pair": few,
                "core_link_gbps": few,
            }
            | hosts
            | {"nics_per_host": st.sampled_from([2, 4])}
            | uplinks
        ),
        st.fixed_dictionaries({"kind": st.just("fat_tree"), "k": st.sampled_from([2, 4]), "uplink_gbps": few} | hosts),
    )


@st.composite
def _graph_documents(draw: st.DrawFn) -> dict[str, Any]:
    """Draw a connected graph with parallel links and hosts of several NICs."""
    switches = [f"s{number}" for number in range(draw(st.integers(1, 6)))]
    hosts = [f"h{number}" for number in range(draw(st.integers(1, 4)))]
    ends = [(draw(st.sampled_from(switches[:number])), switches[number]) for number in range(1, len(switches))]
    if len(switches) > 1:
        pairs = st.lists(st.sampled_from(switches), min_size=2, max_size=2, unique=True)
        ends += [(first, second) for first, second in draw(st.lists(pairs, max_size=8))]
    for host in hosts:
        ends += [(host, switch) for switch in draw(st.lists(st.sampled_from(switches), min_size=1, max_size=3))]
    links = [{"ends": pair, "gbps": 100} for pair in draw(st.permutations(ends))]
    return {"kind": "graph", "hosts": hosts, "switches": switches, "links": links}


shapes = (_regular_documents() | _graph_documents()).map(lambda document: TOPOLOGY.validate_python(document).build())
"""Small fabrics of every kind."""
fabrics = shapes | st.builds(renumbered, shapes, st.integers(0, 1 << 32).map(Random))
"""The same, some with addresses and ports that nobody derives."""
