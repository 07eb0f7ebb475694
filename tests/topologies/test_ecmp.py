import hashlib
import zlib
from collections import Counter
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from tests.topologies.builders import DOUBLE_SIDED, FAT_TREE_8, TESTBED
from topologies.addressing import (
    FIRST_SOURCE_PORT,
    FLOW_DESTINATION_PORT,
    LAST_SOURCE_PORT,
    UDP_PROTOCOL,
    FiveTuple,
    regular_interface,
)
from topologies.ecmp import (
    MAX_SLOTS,
    MultipliedHash,
    TabulatedHash,
    flow_crc,
    flow_hash,
    hash_multipliers,
    num_slots,
)
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


def plain_tabulated_hash(flow: FiveTuple, salt: int) -> int:
    """Tofino's hash, octet by octet."""
    octets = b"".join(
        value.to_bytes(length, "big")
        for value, length in (
            (flow.source_address, 4),
            (flow.destination_address, 4),
            (flow.protocol, 1),
            (flow.source_port, 2),
            (flow.destination_port, 2),
        )
    )
    found = 0
    for place, octet in enumerate((zlib.crc32(octets) ^ salt).to_bytes(4, "big")):
        found ^= int.from_bytes(hashlib.sha256(f"trainyard ecmp {place} {octet}".encode()).digest()[:2], "big")
    return found


def test_the_tabulated_hash_of_a_flow() -> None:
    """The salted CRC-32 of FLOW is 0x1538_0541: the values of 15, 38, 05 and 41 in the four tables."""
    assert flow_crc(FLOW) ^ 1 == 0x1538_0541
    assert TabulatedHash(1).hash_of_crc(flow_crc(FLOW)) == plain_tabulated_hash(FLOW, 1) == 0x27C4


@settings(deadline=None)
@given(st.integers(0, (1 << 32) - 1), st.integers(0, 65_535), st.integers(0, (1 << 32) - 1), st.integers(1, 600))
def test_the_tabulated_hash_is_that_of_the_plain_way(address: int, port: int, salt: int, members: int) -> None:
    flow = FiveTuple(address, FLOW.destination_address, UDP_PROTOCOL, port, FLOW_DESTINATION_PORT)
    law, expected = TabulatedHash(salt), plain_tabulated_hash(flow, salt)
    assert law.hash_of_crc(flow_crc(flow)) == expected
    assert law.choice(flow_crc(flow), members) == expected % num_slots(members) % members


def test_the_choice_of_a_multiplied_hash_is_its_remainder() -> None:
    assert MultipliedHash(1).hash_of_crc(flow_crc(FLOW)) == 0x1538
    assert MultipliedHash(1).choice(flow_crc(FLOW), 7) == 0x1538 % 7


def test_slots_are_powers_of_two_and_shared_evenly() -> None:
    sizes = {1: 1, 2: 2, 3: 256, 4: 4, 5: 512, 7: 512, 8: 8, 9: 1024, 17: 1024, 64: 64, 509: 1024, 512: 512}
    assert {members: num_slots(members) for members in sizes} == sizes
    for members in range(1, MAX_SLOTS + 1):
        slots = Counter(slot % members for slot in range(num_slots(members)))
        assert num_slots(members).bit_count() == 1
        assert num_slots(members) <= MAX_SLOTS
        assert len(slots) == members
        assert max(slots.values()) - min(slots.values()) <= 1


def _crcs() -> list[int]:
    ports = range(FIRST_SOURCE_PORT, LAST_SOURCE_PORT + 1)
    return [flow_crc(replace(FLOW, source_port=port)) for port in ports]


@pytest.mark.slow
def test_flows_that_differ_in_their_ports_alone_spread_over_slots_and_tiers_independently() -> None:
    crcs, uniform, independent = _crcs(), [], []
    for seed in range(20):
        tiers = [TabulatedHash(salt) for salt in hash_multipliers(["t0", "a0"], seed).values()]
        for one, other in ((8, 8), (3, 6)):
            counts = np.zeros((one, other))
            for crc in crcs:
                counts[tiers[0].choice(crc, one), tiers[1].choice(crc, other)] += 1
            independent.append(stats.chi2_contingency(counts).pvalue)
        hashes = np.bincount([tiers[0].hash_of_crc(crc) >> 6 for crc in crcs], minlength=1 << 10)
        uniform.append(stats.chisquare(hashes).pvalue)
        uniform.append(stats.chisquare(np.bincount([tiers[0].hash_of_crc(crc) & 0x3FF for crc in crcs])).pvalue)
    assert sum(value < 0.01 for value in independent[::2]) <= 1
    assert sum(value < 0.01 for value in independent[1::2]) <= 1
    assert sum(value < 0.01 for value in uniform[::2]) <= 1
    assert sum(value < 0.01 for value in uniform[1::2]) <= 1
