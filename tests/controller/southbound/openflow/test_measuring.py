"""Entries that count what a job sends: they change no packet's way, and what they count is told by ports."""

import struct
from collections.abc import Sequence
from dataclasses import replace
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from controller.southbound.openflow import groups
from controller.southbound.openflow.entries import FlowEntry, FlowKey, Forward, Group, GroupType, Match, Table, ToGroup
from controller.southbound.openflow.flow_stats import HeldFlow
from controller.southbound.openflow.group_messages import HeldGroup
from controller.southbound.openflow.group_statistics import decode_group_statistics, group_statistics_request
from controller.southbound.openflow.growing_counts import GrowingCounts
from controller.southbound.openflow.measuring_entries import Measuring, PortCounter, measuring_entries, port_counters
from controller.southbound.openflow.messages import MalformedError
from controller.southbound.openflow.routes import base_entries, route_entries
from tests.controller.southbound.openflow.interpreter import Packet, Switch
from tests.controller.southbound.openflow.os_ken_messages import OsKen
from tests.controller.southbound.openflow.planned import route
from tests.topologies.builders import DOUBLE_SIDED, fabrics
from topologies.addressing import Address, MacAddress, Prefix
from topologies.fabric import Fabric
from topologies.openflow_specification import Queues

_STATISTICS = 6
_UNKNOWN = (1 << 64) - 1


@given(fabrics, st.randoms(use_true_random=False), st.sampled_from(Queues))
def test_no_packet_goes_another_way(fabric: Fabric, random: Random, queues: Queues) -> None:
    dead = {link.index for link in fabric.links if random.random() < 0.1}
    routing = route(fabric).without(dead | {fabric.reverse(link) for link in dead})
    measuring = Measuring(random.randrange(1, 8), random.sample(fabric.hosts, max(1, len(fabric.hosts) // 2)))
    nics = [nic for host in fabric.hosts for nic in fabric.nics[host]]
    for switch in fabric.switches:
        entries = base_entries(switch, routing, queues)
        counting, plain = Switch([*entries, *measuring_entries(switch, measuring, routing)]), Switch(entries)
        for _ in range(4):
            one, other = random.choice(nics), random.choice(nics)
            packet = Packet(one.address, other.address, dscp=random.choice([8 * measuring.level, 8, 63]))
            assert counting.outcomes(packet, 500) == plain.outcomes(packet, 500)


def test_a_group_that_counts_chooses_by_the_hash_of_routing_and_has_an_id_of_its_own() -> None:
    routing = route(DOUBLE_SIDED)
    hosts = DOUBLE_SIDED.hosts
    for switch in DOUBLE_SIDED.switches:
        chosen = {each.buckets: each for each in route_entries(switch, routing) if isinstance(each, Group)}
        counting = [each for each in measuring_entries(switch, Measuring(7, hosts), routing) if isinstance(each, Group)]
        assert {each.buckets for each in counting} == chosen.keys()
        for each in counting:
            assert replace(each, group_id=chosen[each.buckets].group_id) == chosen[each.buckets]
            assert groups.is_own(each.group_id)
            assert groups.is_of_rules(each.group_id)
            assert each.group_id not in {other.group_id for other in chosen.values()}
    assert not groups.is_own((3 << 30) + (1 << 29))


def _held(destination: str, dscp: int, group_id: int, num_bytes: int | None) -> HeldFlow:
    match = Match(0x0800, dscp, destination=Prefix(Address.parse(destination), 32))
    entry = FlowEntry(FlowKey(Table.ROUTING, 64, match), (ToGroup(group_id),))
    return HeldFlow(entry, 1, None, num_bytes, 3, 64, destination.encode())


def test_counters_are_told_by_the_port_that_packets_leave_by() -> None:
    choosing = 3 << 30
    forward = Forward(7, MacAddress(2), MacAddress(4))
    group = Group(choosing, GroupType.SELECT, (forward, replace(forward, port=8), forward))
    held = [
        _held("10.0.0.1", 40, 5, 100),
        _held("10.0.0.2", 40, 5, None),
        _held("10.0.0.3", 40, choosing, 1000),
        _held("10.0.0.4", 48, 6, 100),
        _held("10.0.0.5", 40, choosing + 1, 100),
    ]
    described = [HeldGroup(choosing, group), HeldGroup(5, None), HeldGroup(choosing + 1, None)]
    counted = {choosing: (1, 2, None), 5: (9,), choosing + 1: (3,)}
    assert port_counters(5, held, described, counted) == {
        PortCounter(5, (b"10.0.0.1",)): 100,
        PortCounter(5, (b"10.0.0.2",)): None,
        PortCounter(7, (choosing, 0)): 1,
        PortCounter(8, (choosing, 1)): 2,
        PortCounter(7, (choosing, 2)): None,
    }


_COUNTS = st.integers(0, _UNKNOWN)
_GROUPS = st.dictionaries(st.integers(1, 1 << 31), st.lists(st.tuples(_COUNTS, _COUNTS), max_size=4), max_size=4)


@given(_GROUPS, st.sampled_from((4, 6)))
def test_the_statistics_that_os_ken_builds_are_read(drawn: dict[int, Sequence[tuple[int, int]]], version: int) -> None:
    body = b"".join(
        struct.pack("!HxxII4xQQII", 40 + 16 * len(buckets), group_id, 1, 5, 6, 7, 8)
        + b"".join(struct.pack("!QQ", *counts) for counts in buckets)
        for group_id, buckets in drawn.items()
    )
    reply = OsKen(version).reply(_STATISTICS, body)
    told = {each.group_id: each.bucket_stats for each in OsKen(version).read(reply).body}
    assert {group_id: [(each.packet_count, each.byte_count) for each in told[group_id]] for group_id in told} == drawn
    expected = {
        group_id: tuple(None if count == _UNKNOWN else count for _, count in buckets)
        for group_id, buckets in drawn.items()
    }
    assert decode_group_statistics([reply], version) == expected


@pytest.mark.parametrize("version", [4, 6])
def test_statistics_are_asked_for_as_os_ken_does(version: int) -> None:
    os_ken = OsKen(version)
    name = "OFPGroupStatsRequest"
    assert group_statistics_request(version) == os_ken.octets(name, 0, os_ken.numbers.OFPG_ALL)


def test_truncated_statistics_are_malformed() -> None:
    with pytest.raises(MalformedError, match="the statistics of a bucket"):
        decode_group_statistics([OsKen(4).reply(_STATISTICS, struct.pack("!H54x", 56 - 8)[:48])], 4)


@given(st.lists(st.dictionaries(st.tuples(st.sampled_from("ab"), st.integers(0, 2)), st.integers(0, 9)), max_size=8))
def test_sums_never_fall_and_miss_nothing_that_was_read(readings: list[dict[tuple[str, object], int]]) -> None:
    counts = GrowingCounts[str]()
    before = counts.read({})
    for reading in readings:
        sums = counts.read(reading)
        assert all(sums[place] >= before[place] for place in "ab")
        assert all(sums[place] >= count for (place, _), count in reading.items())
        before = sums
