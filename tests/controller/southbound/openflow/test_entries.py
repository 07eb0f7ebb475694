"""Entries: what the pipeline admits, whose identity is whose, and what stays when something else changes."""

import zlib
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from itertools import combinations
from random import Random
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from controller.rules.flow_rules import FlowRule
from controller.rules.job_rules import JobRule
from controller.southbound.openflow.entries import (
    Entry,
    FlowEntry,
    Group,
    GroupType,
    SetDscp,
    SetQueue,
    Table,
    ToGroup,
)
from controller.southbound.openflow.groups import (
    failover_groups,
    is_known_neighbour,
    macs_of_neighbours,
    neighbour_groups,
    port_groups,
    select_groups,
    unknown_neighbours,
)
from controller.southbound.openflow.pipeline import key_of
from controller.southbound.openflow.routes import base_entries, fixed_entries, route_entries
from controller.southbound.openflow.rule_entries import rule_entries
from controller.southbound.states import RULES, EntryKind
from tests.controller.southbound.openflow.interpreter import Dropped, ForController, Left, Packet, Switch
from tests.controller.southbound.openflow.planned import Decided, route
from tests.topologies.builders import fabrics
from topologies.addressing import BROADCAST_MAC, UDP_PROTOCOL, Address, FiveTuple, Interface, MacAddress, Prefix
from topologies.fabric import Fabric
from topologies.openflow_specification import Queues
from topologies.routing import Routing
from topologies.specification import StarSpecification

randoms = st.integers(0, 1 << 32).map(Random)
queueings = st.sampled_from(Queues)


def sent(fabric: Fabric) -> Packet:
    return Packet(fabric.nics["h0"][0].address, fabric.nics["h2"][0].address)


@pytest.mark.parametrize("queues", Queues)
@pytest.mark.parametrize(
    ("changes", "outcome"),
    [
        ({"ether_type": 0x0806}, ForController(0xFFFF)),
        ({"ether_type": 0x88CC}, ForController(0xFFFF)),
        ({"ether_type": 0x86DD}, Dropped(Table.ADMISSION)),
        ({"destination": Address.parse("192.0.2.1")}, Dropped(Table.ROUTING)),
        ({"time_to_live": 1}, Dropped(None)),
        ({"time_to_live": 0}, Dropped(None)),
    ],
)
def test_what_is_no_ipv4_on_its_way_is_not_sent_on(
    routing: Routing, queues: Queues, changes: dict[str, Any], outcome: Dropped | ForController
) -> None:
    packet = replace(sent(routing.fabric), **changes)
    assert Switch(base_entries("t0", routing, queues)).outcomes(packet, 1) == {outcome}


def test_a_switch_without_rules_has_a_hash_with_its_own_basis_where_it_has_a_choice(routing: Routing) -> None:
    bases = {}
    for switch in routing.fabric.switches:
        groups = [entry for entry in route_entries(switch, routing) if isinstance(entry, Group)]
        (bases[switch],) = {group.hash_basis for group in groups}
        assert {group.kind for group in groups} == {GroupType.SELECT}
    assert len(set(bases.values())) == len(bases)


def test_flow_rules_have_precedence_over_job_rules_and_both_over_the_mark(routing: Routing) -> None:
    fabric = routing.fabric
    packet = replace(sent(fabric), ports=(49152, 4791))
    five_tuple = FiveTuple(packet.source, packet.destination, UDP_PROTOCOL, 49152, 4791)
    of_job = JobRule("t0", packet.source, "h2", Prefix.around(packet.destination, 24), 2)
    of_flow = FlowRule("t0", five_tuple, None, 5)
    base = base_entries("t0", routing, Queues.SET_QUEUE)

    def marks(*rules: FlowRule | JobRule, ports: tuple[int, int] = (49152, 4791)) -> set[tuple[int, int]]:
        switch = Switch(base + rule_entries("t0", rules, routing, Queues.SET_QUEUE))
        found = switch.outcomes(replace(packet, dscp=51, ports=ports), 1)
        return {(each.packet.dscp, each.queue) for each in found if isinstance(each, Left)}

    assert marks() == {(51, 6)}
    assert marks(of_job) == {(16, 2)}
    assert marks(of_job, of_flow) == {(40, 5)}
    assert marks(of_job, of_flow, ports=(49153, 4791)) == {(16, 2)}
    assert marks(replace(of_job, level=0)) == {(0, 0)}


def test_a_rule_that_steers_alone_leaves_mark_and_queue(routing: Routing) -> None:
    fabric = routing.fabric
    chosen = routing.next_links("t0", fabric.nics["h2"][0])[2]
    packet = replace(sent(fabric), ports=(49152, 4791), dscp=51)
    rule = FlowRule("t0", FiveTuple(packet.source, packet.destination, UDP_PROTOCOL, 49152, 4791), chosen, None)
    entries = base_entries("t0", routing, Queues.SET_QUEUE) + rule_entries("t0", [rule], routing, Queues.SET_QUEUE)
    (outcome,) = Switch(entries).outcomes(packet, 1)
    assert isinstance(outcome, Left)
    assert (outcome.port, outcome.packet.dscp, outcome.queue) == (fabric.links[chosen].source_port, 51, 6)


def test_a_steered_flow_has_the_other_ports_of_its_route_behind_its_own(routing: Routing) -> None:
    fabric = routing.fabric
    links = routing.next_links("t0", fabric.nics["h2"][0])
    ports = [fabric.links[link].source_port for link in links]
    five_tuple = FiveTuple(fabric.nics["h0"][0].address, fabric.nics["h2"][0].address, UDP_PROTOCOL, 49152, 4791)
    for chosen, link in enumerate(links):
        group, entry = rule_entries("t0", [FlowRule("t0", five_tuple, link, None)], routing, Queues.DSCP)
        assert isinstance(group, Group)
        assert isinstance(entry, FlowEntry)
        assert group.kind is GroupType.FAST_FAILOVER
        assert [bucket.port for bucket in group.buckets] == ports[chosen:] + ports[:chosen]
        assert entry.actions == (ToGroup(group.group_id),)


def test_a_steered_flow_without_another_port_needs_no_group_of_its_own(routing: Routing) -> None:
    fabric = routing.fabric
    links = routing.next_links("t0", fabric.nics["h2"][0])
    alone = routing.without(frozenset(link ^ direction for link in links[1:] for direction in (0, 1)))
    five_tuple = FiveTuple(fabric.nics["h0"][0].address, fabric.nics["h2"][0].address, UDP_PROTOCOL, 49152, 4791)
    (entry,) = rule_entries("t0", [FlowRule("t0", five_tuple, links[0], 3)], alone, Queues.DSCP)
    assert isinstance(entry, FlowEntry)
    assert entry.actions == (SetDscp(24), ToGroup(fabric.links[links[0]].source_port))


@pytest.mark.slow
@given(fabrics, randoms, queueings)
def test_entries_lead_only_to_entries_of_smaller_kinds(fabric: Fabric, random: Random, queues: Queues) -> None:
    decided = Decided(route(fabric), random)
    for entries in decided.entries(queues).values():
        keys = {key_of(entry): entry for entry in entries}
        assert len(keys) == len(entries)
        kind_of_group = {entry.group_id: key.kind for key, entry in keys.items() if isinstance(entry, Group)}
        kinds_of_table: dict[Table, set[EntryKind]] = {}
        for key, entry in keys.items():
            if isinstance(entry, FlowEntry) and key.kind not in RULES:
                kinds_of_table.setdefault(entry.key.table, set()).add(key.kind)
        for key, entry in keys.items():
            if isinstance(entry, FlowEntry):
                groups = [action.group_id for action in entry.actions if isinstance(action, ToGroup)]
                assert all(kind_of_group[group_id] < key.kind for group_id in groups)
                later = kinds_of_table[entry.goto] if entry.goto is not None else set()
                # Nothing comes into these before ADMISSION, which is written after them.
                is_passed = key.kind in (EntryKind.LEVEL, EntryKind.PASSAGE)
                assert all(kind < (EntryKind.ADMISSION if is_passed else key.kind) for kind in later)


@pytest.mark.slow
@given(fabrics, st.lists(randoms, min_size=3, max_size=3))
def test_the_id_of_a_group_says_what_it_does(fabric: Fabric, randoms: list[Random]) -> None:
    """Under whatever Plan and dead links, a switch has one meaning for an id; types have ranges of their own."""
    routing = route(fabric)
    meanings: dict[tuple[str, int], Group] = {}
    types: dict[int, GroupType] = {}
    for random in randoms:
        dead = frozenset(
            link
            for cable in random.sample(range(len(fabric.cables)), k=len(fabric.cables) // 3)
            for link in (2 * cable, 2 * cable + 1)
        )
        for switch, entries in Decided(routing.without(dead), random).entries(Queues.DSCP).items():
            for group in entries:
                if isinstance(group, Group):
                    assert meanings.setdefault((switch, group.group_id), group) == group
                    assert types.setdefault(group.group_id >> 30, group.kind) is group.kind


def test_groups_with_the_same_checksum_have_ids_of_their_own(routing: Routing, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(zlib, "crc32", lambda _: 0xFFFF_FFFF)
    ports = [link.source_port for link in routing.fabric.links_from["t0"]]
    choices = list(combinations(ports, 2))
    for groups in (select_groups("t0", routing, choices), failover_groups("t0", routing.fabric, choices)):
        assert len({group.group_id for group in groups.values()}) == len(choices)
        assert len({group.group_id >> 30 for group in groups.values()}) == 1


def test_entries_of_rules_that_stay_are_the_same_objects(routing: Routing) -> None:
    decided = Decided(routing, Random(1))
    for switch, rules in decided.rules().items():
        before = rule_entries(switch, rules, routing, Queues.DSCP)
        after = rule_entries(switch, list(reversed(rules)), routing, Queues.DSCP)
        of_rules = {id(entry) for entry in before if isinstance(entry, FlowEntry)}
        assert of_rules == {id(entry) for entry in after if isinstance(entry, FlowEntry)}


def test_entries_name_queues_only_where_ports_do_not_find_them(routing: Routing) -> None:
    decided = Decided(routing, Random(1))

    def queue_setters(entries: dict[str, list[Entry]]) -> Iterator[FlowEntry]:
        for some in entries.values():
            for entry in some:
                if isinstance(entry, FlowEntry) and any(isinstance(action, SetQueue) for action in entry.actions):
                    yield entry

    assert not list(queue_setters(decided.entries(Queues.DSCP)))
    setters = Counter(entry.key.table for entry in queue_setters(decided.entries(Queues.SET_QUEUE)))
    assert setters[Table.LEVEL] == 7 * 8 * len(routing.fabric.switches)
    assert setters[Table.RULES] > 0


def slots_of(ports: list[int]) -> Counter[int]:
    """Reference: the slots that Open vSwitch gives to buckets of these ports, by the method of Webster."""
    num_slots = 16
    while num_slots < len(ports):
        num_slots *= 2
    divisors = [1] * len(ports)
    slots: Counter[int] = Counter()
    for _ in range(num_slots):
        winner = min(range(len(ports)), key=lambda bucket: (divisors[bucket], bucket))
        divisors[winner] += 2
        slots[ports[winner]] += 1
    return slots


@pytest.mark.parametrize("num_ports", [*range(2, 25), 32, 48, 64])
def test_every_port_of_a_group_has_an_even_share_of_the_hash(num_ports: int) -> None:
    star = StarSpecification(kind="star", hosts=num_ports, nics_per_host=1, host_link_gbps=100).build()
    choice = tuple(link.source_port for link in star.links_from["t0"])
    (group,) = select_groups("t0", route(star), [choice]).values()
    slots = slots_of([bucket.port for bucket in group.buckets])
    even = sum(slots.values()) / num_ports
    assert set(slots) == set(choice)
    assert max(abs(share / even - 1) for share in slots.values()) < 0.15
    assert len(group.buckets) <= 256
    if num_ports & (num_ports - 1) == 0:
        assert len(group.buckets) == num_ports


@pytest.fixture
def unknown(fabric: Fabric) -> Fabric:
    """The fabric with NICs whose MACs nobody has told."""
    interfaces = tuple(
        tuple(
            replace(regular, mac=None)
            for regular in (_interface(fabric, host, number) for number in range(len(fabric.nics[host])))
        )
        for host in fabric.hosts
    )
    return replace(fabric, interfaces=interfaces)


def _interface(fabric: Fabric, host: str, number: int) -> Interface:
    nic = fabric.nics[host][number]
    return Interface(nic.name, nic.address, nic.subnet.length, nic.mac)


def test_learned_macs_stand_in_the_place_of_the_broadcast_address(unknown: Fabric) -> None:
    nic = unknown.nics["h1"][0]
    mac = MacAddress.parse("02:12:34:56:78:9a")
    before = {key_of(group): group for group in unknown_neighbours("t0", unknown)}
    assert {bucket.destination_mac for group in before.values() for bucket in group.buckets} == {BROADCAST_MAC}
    assert before.items() <= {key_of(each): each for each in fixed_entries("t0", route(unknown), Queues.DSCP)}.items()
    (learned,) = neighbour_groups("t0", unknown, {nic.address: mac, unknown.nics["h2"][0].address: mac})
    assert is_known_neighbour(learned, before[key_of(learned)])
    assert list(macs_of_neighbours("t0", unknown, [learned])) == [(nic.address, mac)]
    (other,) = (group for key, group in before.items() if key != key_of(learned))
    assert not is_known_neighbour(learned, other)
    assert not is_known_neighbour(other, other)
    packet = Packet(unknown.nics["h2"][0].address, nic.address)
    held = {key_of(each): each for each in base_entries("t0", route(unknown), Queues.DSCP)} | {key_of(learned): learned}
    (outcome,) = Switch(held.values()).outcomes(packet, ingress_port=5)
    assert isinstance(outcome, Left)
    assert outcome.packet.destination_mac == mac


@pytest.mark.slow
@given(fabrics, randoms)
def test_only_groups_of_single_ports_lead_to_nics(fabric: Fabric, random: Random) -> None:
    """So a learned MAC has one place."""
    for switch, entries in Decided(route(fabric), random).entries(Queues.DSCP).items():
        to_nics = {link.source_port for link in fabric.links_from[switch] if link.destination in fabric.host_index}
        for group in entries:
            if isinstance(group, Group) and group.kind is not GroupType.INDIRECT:
                assert not to_nics & {bucket.port for bucket in group.buckets}


def test_every_port_has_a_group_whose_id_is_its_number(routing: Routing) -> None:
    for switch in routing.fabric.switches:
        groups = port_groups(switch, routing.fabric)
        assert groups.keys() == {link.source_port for link in routing.fabric.links_from[switch]}
        assert all(group.group_id == port for port, group in groups.items())
