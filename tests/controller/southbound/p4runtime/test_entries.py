"""Entries survive the way through P4Runtime, and say what the fabric needs."""

from dataclasses import replace
from pathlib import Path

import pytest
from finsy import P4ActionProfileGroup, P4IndirectAction, P4Schema, P4TableAction, P4TableEntry
from finsy.p4entity import decode_entity

import controller
from controller.rules.flow_rules import FlowRule
from controller.southbound.p4runtime.entries import base_entries, fixed_entries, flow_entry, key_of
from controller.southbound.p4runtime.states import difference, state_of
from controller.southbound.states import EntryKey, EntryKind
from topologies.addressing import UDP_PROTOCOL, FiveTuple, MacAddress, switch_mac
from topologies.fabric import Control, Fabric, SwitchIdentity
from topologies.routing import Routing
from topologies.specification import DumbbellSpecification

P4INFO = Path(controller.__file__).parent.parent / "p4src" / "build" / "trainyard.p4info.txtpb"


@pytest.fixture(scope="module")
def schema() -> P4Schema:
    return P4Schema(P4INFO)


def _rule(fabric: Fabric, next_link: int | None, level: int | None) -> FlowRule:
    source, destination = fabric.nics["h0"][0], fabric.nics["h2"][0]
    return FlowRule("t0", FiveTuple(source.address, destination.address, UDP_PROTOCOL, 49152, 4791), next_link, level)


def test_what_a_switch_reads_back_is_what_was_written(routing: Routing, schema: P4Schema) -> None:
    uplink = routing.next_links("t0", routing.fabric.nics["h2"][0])[0]
    for switch in routing.fabric.switches:
        entities = [
            *base_entries(switch, routing),
            *(
                flow_entry(_rule(routing.fabric, next_link, level), routing.fabric)
                for next_link, level in ((uplink, None), (None, 3), (uplink, 7))
            ),
        ]
        read_back = [decode_entity(entity.encode(schema), schema) for entity in entities]
        assert difference(state_of(read_back), state_of(entities)) == ()


def test_groups_have_the_members_of_the_route_in_its_order(routing: Routing) -> None:
    entries = state_of(base_entries("t0", routing))
    links = routing.fabric.links
    for route in routing.routes("t0"):
        key = EntryKey(EntryKind.ROUTING, (("destination_address", (route.address, route.prefix_length)),))
        entry = entries[key]
        assert isinstance(entry, P4TableEntry)
        assert isinstance(entry.action, P4IndirectAction)
        assert entry.action.group_id is not None
        group = entries[EntryKey(EntryKind.GROUP, entry.action.group_id)]
        assert isinstance(group, P4ActionProfileGroup)
        assert [m.member_id for m in group.members or ()] == [links[link].source_port for link in route.links]


def test_id_of_a_group_follows_from_its_members_alone(routing: Routing) -> None:
    members_of: dict[int, set[tuple[int, ...]]] = {}
    for switch in routing.fabric.switches:
        for entry in base_entries(switch, routing):
            if isinstance(entry, P4ActionProfileGroup):
                ports = tuple(member.member_id for member in entry.members or ())
                members_of.setdefault(entry.group_id, set()).add(ports)
    assert all(len(ports) == 1 for ports in members_of.values())
    assert len(members_of) == len(set().union(*members_of.values()))


def test_next_hops_readdress_to_the_neighbour(routing: Routing) -> None:
    fabric = routing.fabric
    entries = state_of(base_entries("t0", routing))
    to_host, to_switch = fabric.links_from["t0"][0], fabric.links_from["t0"][-1]
    expected = {
        to_host.source_port: fabric.nics[to_host.destination][0].mac,
        to_switch.source_port: switch_mac(fabric.switch_index[to_switch.destination], to_switch.destination_port),
    }
    for port, mac in expected.items():
        entry = entries[EntryKey(EntryKind.NEXT_HOP, (("next_hop", port),))]
        assert isinstance(entry, P4TableEntry)
        assert isinstance(entry.action, P4TableAction)
        assert (entry.action.args["port"], entry.action.args["destination_mac"]) == (port, mac)


@pytest.mark.parametrize(
    ("steers", "level", "action"),
    [(True, None, "steer"), (False, 2, "prioritise"), (True, 2, "steer_and_prioritise")],
)
def test_a_flow_rule_is_one_entry(fabric: Fabric, steers: bool, level: int | None, action: str) -> None:
    uplink = fabric.links_from["t0"][-1]
    entry = flow_entry(_rule(fabric, uplink.index if steers else None, level), fabric)
    assert isinstance(entry.action, P4TableAction)
    assert entry.action.name == action
    assert entry.action.args.get("next_hop", uplink.source_port) == uplink.source_port
    assert entry.action.args.get("level", level) == level


def test_unknown_table_has_no_key() -> None:
    with pytest.raises(ValueError, match="'acl'"):
        key_of(P4TableEntry("acl"))


def test_switches_send_to_the_mac_of_an_ordinary_switchs_router() -> None:
    mac = MacAddress.parse("0c:42:a1:00:00:07")
    identities = SwitchIdentity(1, 1), SwitchIdentity(2, 2, control=Control.DSCP_ONLY, mac=mac)
    dumbbell = DumbbellSpecification(kind="dumbbell", hosts_per_side=2, host_link_gbps=4, bottleneck_gbps=1)
    fabric = replace(dumbbell.build(), identities=identities)
    entries = fixed_entries("t0", Routing(fabric, dict.fromkeys(fabric.switches, 1)))
    macs = {
        entry.action.args["port"]: entry.action.args["destination_mac"]
        for entry in entries
        if isinstance(entry, P4TableEntry) and entry.table_id == "next_hop" and isinstance(entry.action, P4TableAction)
    }
    (to_the_other,) = fabric.links_between("t0", "t1")
    assert macs == {
        1: fabric.nics["h0"][0].mac,
        2: fabric.nics["h1"][0].mac,
        fabric.links[to_the_other].source_port: mac,
    }
