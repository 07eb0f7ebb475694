"""A source port is found for every path, and the fabric's hash follows it."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from topologies.addressing import FIRST_SOURCE_PORT, LAST_SOURCE_PORT, UDP_PROTOCOL, FiveTuple
from topologies.ecmp import hash_multipliers
from topologies.routing import Routing
from topologies.specification import ClosSpecification
from topologies.steering import steered_five_tuple

_CLOS = ClosSpecification(
    kind="clos", tors=3, aggs=4, hosts_per_tor=2, host_link_gbps=100, uplink_gbps=100, uplinks_per_pair=2
)


def _routing(seed: int) -> Routing:
    fabric = _CLOS.build()
    return Routing(fabric, hash_multipliers(fabric.switches, seed))


def _five_tuple(routing: Routing, source: str, destination: str) -> FiveTuple:
    nics = routing.fabric.nics
    return FiveTuple(nics[source][0].address, nics[destination][0].address, UDP_PROTOCOL, FIRST_SOURCE_PORT, 4791)


@given(seed=st.integers(0, 1 << 30), source=st.integers(0, 5), destination=st.integers(0, 5))
def test_the_hash_follows_the_port_along_every_candidate_path(seed: int, source: int, destination: int) -> None:
    if source == destination:
        return
    routing = _routing(seed)
    nics = routing.fabric.nics
    five_tuple = _five_tuple(routing, f"h{source}", f"h{destination}")
    for path in routing.candidate_paths(nics[f"h{source}"][0], nics[f"h{destination}"][0]):
        found = steered_five_tuple(five_tuple, path, routing, taken=())
        assert found is not None
        assert routing.hashed_path(found) == path
        assert replace(found, source_port=FIRST_SOURCE_PORT) == five_tuple
        assert FIRST_SOURCE_PORT <= found.source_port <= LAST_SOURCE_PORT
        lower = (replace(found, source_port=port) for port in range(FIRST_SOURCE_PORT, found.source_port))
        assert all(routing.hashed_path(other) != path for other in lower)


def test_a_port_that_is_taken_is_passed_over_until_none_is_left() -> None:
    routing = _routing(1)
    five_tuple = _five_tuple(routing, "h0", "h2")
    path = routing.hashed_path(five_tuple)
    first = steered_five_tuple(five_tuple, path, routing, taken=())
    second = steered_five_tuple(five_tuple, path, routing, taken={first})
    assert first is not None
    assert second is not None
    assert routing.hashed_path(second) == path
    assert second.source_port > first.source_port

    class Everything:
        def __contains__(self, _: object) -> bool:
            return True

    assert steered_five_tuple(five_tuple, path, routing, taken=Everything()) is None


def test_a_path_that_the_fabric_never_takes_is_refused() -> None:
    routing = _routing(1)
    five_tuple = _five_tuple(routing, "h0", "h2")
    elsewhere = routing.hashed_path(_five_tuple(routing, "h0", "h4"))
    with pytest.raises(ValueError, match="not in tuple"):
        steered_five_tuple(five_tuple, elsewhere, routing, taken=())
