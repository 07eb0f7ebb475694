import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.topologies.builders import DOUBLE_SIDED, FAT_TREE_8, TESTBED
from topologies.addressing import (
    FIRST_SOURCE_PORT,
    FLOW_DESTINATION_PORT,
    LAST_SOURCE_PORT,
    UDP_PROTOCOL,
    FiveTuple,
    regular_interface,
)
from topologies.ecmp import flow_hash, hash_multipliers
from topologies.fabric import Fabric
from topologies.routing import Routing

FLOW = FiveTuple(
    regular_interface(0, 0).address,
    regular_interface(2, 0).address,
    UDP_PROTOCOL,
    FIRST_SOURCE_PORT,
    FLOW_DESTINATION_PORT,
)


def test_multipliers_are_odd_and_differ() -> None:
    switches = [f"s{number}" for number in range(1000)]
    multipliers = hash_multipliers(switches, seed=1)
    assert list(multipliers) == switches
    assert all(value % 2 == 1 and 0 < value < 1 << 32 for value in multipliers.values())
    assert len(set(multipliers.values())) == len(switches)


def test_multipliers_follow_from_name_and_seed_alone() -> None:
    assert hash_multipliers(["t0"], seed=1) == {"t0": 0x1C50_7CAD}
    assert hash_multipliers(["a0", "t0"], seed=1)["t0"] == 0x1C50_7CAD
    assert hash_multipliers(["t0"], seed=2)["t0"] != 0x1C50_7CAD


def test_hash_is_the_upper_half_of_the_checksum_times_the_multiplier() -> None:
    """CRC-32 of the flow's 13 bytes 0a000001 0a000201 11 c000 12b7 is 0x1538_0540."""
    assert flow_hash(FLOW, 1) == 0x1538
    assert flow_hash(FLOW, 0x0001_0001) == 0x1A78


@settings(deadline=None)
@given(st.integers(0, (1 << 32) - 1), st.integers(0, 65_535), st.integers(0, (1 << 31) - 1).map(lambda n: 2 * n + 1))
def test_hash_has_sixteen_bits(address: int, port: int, multiplier: int) -> None:
    flow = FiveTuple(address, FLOW.destination_address, UDP_PROTOCOL, port, FLOW_DESTINATION_PORT)
    assert 0 <= flow_hash(flow, multiplier) < 1 << 16


@pytest.mark.parametrize("seed", [1, 2, 3])
@pytest.mark.parametrize(
    ("fabric", "ends"),
    [
        (TESTBED, (("h0", 0), ("h2", 0))),
        (TESTBED, (("h11", 7), ("h4", 3))),
        (DOUBLE_SIDED, (("h0", 0), ("h4", 1))),
        (DOUBLE_SIDED, (("h3", 5), ("h1", 4))),
        (DOUBLE_SIDED, (("h0", 0), ("h1", 1))),
        (FAT_TREE_8, (("h0", 0), ("h127", 0))),
        (FAT_TREE_8, (("h77", 0), ("h20", 0))),
        (FAT_TREE_8, (("h16", 0), ("h31", 0))),
    ],
)
def test_source_ports_reach_every_path(
    fabric: Fabric, ends: tuple[tuple[str, int], tuple[str, int]], seed: int
) -> None:
    routing = Routing(fabric, hash_multipliers(fabric.switches, seed))
    source, destination = (fabric.nics[host][nic] for host, nic in ends)
    missing = set(routing.candidate_paths(source, destination))
    assert len(missing) > 1
    for port in range(FIRST_SOURCE_PORT, LAST_SOURCE_PORT + 1):
        if not missing:
            break
        flow = FiveTuple(source.address, destination.address, UDP_PROTOCOL, port, FLOW_DESTINATION_PORT)
        missing.discard(routing.hashed_path(flow))
    assert not missing
