"""A fabric of one switch, and a rule for it."""

import pytest

from controller.rules.flow_rules import FlowRule
from topologies.addressing import UDP_PROTOCOL, FiveTuple
from topologies.ecmp import hash_multipliers
from topologies.routing import Routing
from topologies.specification import GraphSpecification


@pytest.fixture(scope="module")
def star() -> Routing:
    """Two hosts on one switch."""
    fabric = GraphSpecification.model_validate(
        {
            "kind": "graph",
            "hosts": ["h0", "h1"],
            "switches": ["s0"],
            "links": [{"ends": ["h0", "s0"], "gbps": 100}, {"ends": ["h1", "s0"], "gbps": 100}],
        }
    ).build()
    return Routing(fabric, hash_multipliers(fabric.switches, seed=1))


@pytest.fixture
def rule(star: Routing) -> FlowRule:
    source, destination = star.fabric.nics["h0"][0], star.fabric.nics["h1"][0]
    return FlowRule("s0", FiveTuple(source.address, destination.address, UDP_PROTOCOL, 49152, 4791), None, 6)
