"""Make P4Runtime entries of the pipeline in ``p4src/``: base routing and rules.

Names are P4Info's aliases. A next hop has the number of the port it leaves by, and so has its member of the selector:
neither changes where cables are added or removed beside it. Tofino has slots in the place of the selector
(``controller.southbound.p4runtime.slots``).
"""

import zlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import lru_cache

from finsy import (
    P4ActionProfileGroup,
    P4ActionProfileMember,
    P4IndirectAction,
    P4Member,
    P4TableAction,
    P4TableEntry,
    P4TableMatch,
)

from controller.rules.flow_rules import FlowRule
from controller.rules.job_rules import JobRule
from controller.southbound.p4runtime.slots import (
    SLOT_TABLE,
    GroupNumbers,
    Ports,
    plain_route,
    slot_entries,
    slot_route,
)
from controller.southbound.states import EntryKey, EntryKind
from topologies.addressing import BROADCAST_MAC, Address, MacAddress, switch_mac
from topologies.fabric import Fabric, Link, Nic
from topologies.routing import Route, Routing
from topologies.targets import TARGETS, Target

Entity = P4TableEntry | P4ActionProfileMember | P4ActionProfileGroup

_SELECTOR = "ecmp"
_LEVELS = range(1, 8)
_DSCP_OF_CLASS = 8
"""Class selector n, CSn, is DSCP 8n."""

_FOREIGN_BITS = (0, 2, 4, 6)
"""Values of DSCP bits 2 and 1, which are not ours: bits 5..3 tell the level in any case. Bit 0 announces INT."""

MARKING_DEPTH_PACKETS = 12
"""Queue depth from which packets get an ECN mark, for hosts that react to it."""


FLOW_TABLE = "flow"
NEXT_HOP_TABLE = "next_hop"
JOB_TABLE = "job"

JOB_PRIORITY = 4790
"""The P4Runtime priority of the controller's entries of JOB_TABLE; entries with another one are the operator's."""

TABLES = {
    "level": EntryKind.LEVEL,
    NEXT_HOP_TABLE: EntryKind.NEXT_HOP,
    SLOT_TABLE: EntryKind.GROUP,
    "routing": EntryKind.ROUTING,
    JOB_TABLE: EntryKind.JOB,
    FLOW_TABLE: EntryKind.FLOW,
}
"""Tables whose entries belong to the controller, as far as a program has them.

Those of other tables are the operator's, and left alone.
"""

_NODE = "node"
"""The table with the number of a switch for the hash."""

SETTINGS = (_NODE, "node_id", "ecn")
"""Tables whose default entry belongs to the controller."""

OWN_TABLES_BESIDE_OTHERS = "level", FLOW_TABLE, "node_id"
TABLES_SHARED_WITH_OPERATORS = JOB_TABLE, "ecn"
"""The tables that are left where somebody else fills those of base routing."""

_BASE_KINDS = EntryKind.NEXT_HOP, EntryKind.MEMBER, EntryKind.GROUP, EntryKind.ROUTING

_PARAMETERS = {
    "v1model": {"set_node": "hash_multiplier", "mark_from": "depth_packets"},
    "tna": {"set_node": "hash_salt", "mark_from": "depth_cells"},
}
"""What the programs of several architectures call the one parameter of an action, where they differ."""

_WHOLE_ADDRESS = 0xFFFF_FFFF


def key_of(entity: Entity) -> EntryKey:
    """Return the identity of an entity: its id, its table's name or its match fields by name.

    Raises:
        ValueError: The pipeline has no such table.
    """
    # Table entries first: most are, and to match an abstract class takes long.
    match entity:
        case P4TableEntry() if entity.is_default_action:
            return EntryKey(EntryKind.SETTING, entity.table_id)
        case P4TableEntry() if entity.table_id in TABLES:
            return EntryKey(TABLES[entity.table_id], tuple(sorted((entity.match or {}).items())))
        case P4TableEntry():
            raise ValueError(f"table {entity.table_id!r} is not one of {', '.join(TABLES)}")
        case P4ActionProfileMember():
            return EntryKey(EntryKind.MEMBER, entity.member_id)
        case P4ActionProfileGroup():
            return EntryKey(EntryKind.GROUP, entity.group_id)


def is_base(key: EntryKey) -> bool:
    """Return whether an entity belongs to base routing, which may be somebody else's."""
    return key.kind in _BASE_KINDS or (key.kind is EntryKind.SETTING and key.identity == _NODE)


def is_own(entity: Entity) -> bool:
    """Return whether an entity of a table of the controller is its own; JOB_TABLE also has entries of operators."""
    return not (isinstance(entity, P4TableEntry) and entity.table_id == JOB_TABLE and entity.priority != JOB_PRIORITY)


def holds_same(one: Entity, other: Entity) -> bool:
    """Return whether two entities with the same key do the same."""
    match one, other:
        case P4TableEntry(), P4TableEntry():
            return one.action == other.action
        case P4ActionProfileMember(), P4ActionProfileMember():
            return one.action == other.action
        case P4ActionProfileGroup(), P4ActionProfileGroup():
            return _members(one) == _members(other)
    return False


def base_entries(switch: str, routing: Routing) -> list[Entity]:
    """Return what a switch needs to route by the fabric's hash and to serve marked levels."""
    return fixed_entries(switch, routing) + route_entries(switch, routing)


def fixed_entries(switch: str, routing: Routing) -> list[Entity]:
    """Return the base entries that do not depend on dead links."""
    fabric = routing.fabric
    leaving = fabric.links_from[switch]
    target = fabric.identity[switch].target
    names, depth = _PARAMETERS[TARGETS[target].architecture], MARKING_DEPTH_PACKETS * TARGETS[target].cells_per_packet
    return [
        _setting(_NODE, "set_node", **{names["set_node"]: routing.hash_multipliers[switch]}),
        _setting("node_id", "set_node_id", node_id=fabric.identity[switch].node_id),
        _setting("ecn", "mark_from", **{names["mark_from"]: depth}),
        *(_level(level, foreign_bits) for level in _LEVELS for foreign_bits in _FOREIGN_BITS),
        *(_next_hop(link, fabric, _neighbour_mac(link, fabric)) for link in leaving),
        *(() if target is Target.TOFINO else map(_member, leaving)),
    ]


def route_entries(switch: str, routing: Routing, numbers: GroupNumbers | None = None) -> list[Entity]:
    """Return the base entries that do: routes and their ECMP groups, with ``numbers`` on Tofino; None: new ones."""
    fabric = routing.fabric
    routes = routing.routes(switch)
    if fabric.identity[switch].target is Target.TOFINO:
        return _routes_by_slots(routes, fabric, numbers or GroupNumbers())
    groups = _group_ids({_ports(route, fabric) for route in routes})
    return [
        *(_group(group_id, ports) for ports, group_id in groups.items()),
        *(_route(route, groups[_ports(route, fabric)]) for route in routes),
    ]


def _routes_by_slots(routes: Sequence[Route], fabric: Fabric, numbers: GroupNumbers) -> list[Entity]:
    ports_of = {route: _ports(route, fabric) for route in routes}
    group_of = numbers.of(ports for ports in ports_of.values() if len(ports) > 1)
    return [
        *(entry for ports, group in group_of.items() for entry in slot_entries(group, ports)),
        *(
            slot_route(route, group_of[ports]) if ports in group_of else plain_route(route, *ports)
            for route, ports in ports_of.items()
        ),
    ]


def neighbour_entries(switch: str, fabric: Fabric, macs: Mapping[Address, MacAddress]) -> list[Entity]:
    """Return the next hops to NICs whose MACs were learned; ``fixed_entries`` has the broadcast address there.

    A cable leads to one host, so that broadcast brings it what does not need the NIC's own address: UDP, and probes.
    """
    return [
        _next_hop(link, fabric, macs[nic.address])
        for link, nic in _links_to_nics(switch, fabric)
        if nic.mac is None and nic.address in macs
    ]


def unknown_neighbours(switch: str, fabric: Fabric) -> list[Entity]:
    """Return the next hops to NICs whose MACs have to be learned, with the broadcast address."""
    return [_next_hop(link, fabric, BROADCAST_MAC) for link, nic in _links_to_nics(switch, fabric) if nic.mac is None]


def is_known_neighbour(entity: Entity, unknown: Entity) -> bool:
    """Return whether an entity is the next hop to a neighbour, in the place of one to an unknown neighbour."""
    match entity, unknown:
        case P4TableEntry(action=P4TableAction() as known), P4TableEntry(action=P4TableAction() as other):
            return (
                known.name == other.name
                and MacAddress(known.args.get("destination_mac", BROADCAST_MAC)).is_of_one_nic
                and known.args | {"destination_mac": 0} == (other.args | {"destination_mac": 0})
            )
    return False


def macs_of_neighbours(switch: str, fabric: Fabric, entities: Iterable[Entity]) -> Iterator[tuple[Address, MacAddress]]:
    """Yield the addresses and MACs of the NICs that such next hops lead to."""
    nic_at = {link.source_port: nic for link, nic in _links_to_nics(switch, fabric)}
    for entity in entities:
        match entity:
            case P4TableEntry(action=P4TableAction() as action):
                yield nic_at[action.args["port"]].address, MacAddress(action.args["destination_mac"])


def _links_to_nics(switch: str, fabric: Fabric) -> Iterator[tuple[Link, Nic]]:
    for link in fabric.links_from[switch]:
        if link.destination in fabric.host_index:
            yield link, fabric.nics[link.destination][link.destination_port]


def without_unknown_next_hop(rule: FlowRule, next_hops: Mapping[int, int]) -> FlowRule | None:
    """Return what can be carried out of a rule where only links with ``next_hops`` can be steered to; None: nothing."""
    if rule.next_link is None or rule.next_link in next_hops:
        return rule
    return None if rule.level is None else replace(rule, next_link=None)


def flow_entry(rule: FlowRule, fabric: Fabric, next_hops: Mapping[int, int] | None = None) -> P4TableEntry:
    """Return the entry that carries out a flow rule.

    ``next_hops`` has those of the switch by link, where somebody else has numbered them.
    """
    five_tuple = rule.five_tuple
    match = P4TableMatch(
        source_address=five_tuple.source_address,
        destination_address=five_tuple.destination_address,
        protocol=five_tuple.protocol,
        source_port=five_tuple.source_port,
        destination_port=five_tuple.destination_port,
    )
    next_hop = None
    if rule.next_link is not None:
        next_hop = fabric.links[rule.next_link].source_port if next_hops is None else next_hops[rule.next_link]
    return P4TableEntry(FLOW_TABLE, match=match, action=_flow_action(next_hop, rule.level))


@lru_cache(1 << 14)  # few differ, and every rule has one
def _flow_action(next_hop: int | None, level: int | None) -> P4TableAction:
    if next_hop is None:
        return P4TableAction("prioritise", level=level)
    if level is None:
        return P4TableAction("steer", next_hop=next_hop)
    return P4TableAction("steer_and_prioritise", next_hop=next_hop, level=level)


def job_entry(rule: JobRule) -> P4TableEntry:
    """Return the entry that carries out a job rule."""
    match = P4TableMatch(
        source_address=(rule.source_address, _WHOLE_ADDRESS),
        destination_address=(rule.destination.address, rule.destination.mask),
    )
    action = P4TableAction("prioritise_job", level=rule.level)
    return P4TableEntry(JOB_TABLE, match=match, action=action, priority=JOB_PRIORITY)


def next_hop_of(entity: Entity) -> int | None:
    """Return the next hop that a flow rule steers to; None if it steers nowhere."""
    match entity:
        case P4TableEntry(table_id=table, action=P4TableAction() as action) if table == FLOW_TABLE:
            return action.args.get("next_hop")
    return None


def _setting(table: str, action: str, **arguments: int) -> P4TableEntry:
    return P4TableEntry(table, action=P4TableAction(action, **arguments), is_default_action=True)


def _level(level: int, foreign_bits: int) -> P4TableEntry:
    match = P4TableMatch(dscp=_DSCP_OF_CLASS * level + foreign_bits)
    return P4TableEntry("level", match=match, action=P4TableAction("set_level", level=level))


def _next_hop(link: Link, fabric: Fabric, destination_mac: int) -> P4TableEntry:
    return P4TableEntry(
        "next_hop",
        match=P4TableMatch(next_hop=link.source_port),
        action=P4TableAction(
            "forward",
            port=link.source_port,
            source_mac=switch_mac(fabric.switch_index[link.source], link.source_port),
            destination_mac=destination_mac,
        ),
    )


def _neighbour_mac(link: Link, fabric: Fabric) -> int:
    if link.destination in fabric.host_index:
        mac = fabric.nics[link.destination][link.destination_port].mac
        return BROADCAST_MAC if mac is None else mac
    mac = fabric.identity[link.destination].mac
    return switch_mac(fabric.switch_index[link.destination], link.destination_port) if mac is None else mac


def _member(link: Link) -> P4ActionProfileMember:
    return P4ActionProfileMember(
        _SELECTOR, member_id=link.source_port, action=P4TableAction("set_next_hop", next_hop=link.source_port)
    )


def _ports(route: Route, fabric: Fabric) -> Ports:
    return tuple(fabric.links[link].source_port for link in route.links)


def _group_ids(groups: Iterable[Ports]) -> dict[Ports, int]:
    """Return an id for every group, computed from its members so that an id never changes its meaning under a route."""
    ids: dict[Ports, int] = {}
    for ports in sorted(groups):
        group_id = zlib.crc32(b"".join(port.to_bytes(2, "big") for port in ports))
        while group_id == 0 or group_id in ids.values():
            group_id = group_id + 1 & 0xFFFF_FFFF
        ids[ports] = group_id
    return ids


def _group(group_id: int, ports: Ports) -> P4ActionProfileGroup:
    # Each member watches its port: the switch skips it by itself while the port is down.
    members = [P4Member(port, weight=(1, port)) for port in ports]
    return P4ActionProfileGroup(_SELECTOR, group_id=group_id, max_size=len(ports), members=members)


@lru_cache(1 << 18)  # most stay the same when a link dies; identical objects need no comparison
def _route(route: Route, group: int) -> P4TableEntry:
    return P4TableEntry(
        "routing",
        match=P4TableMatch(destination_address=(route.address, route.prefix_length)),
        action=P4IndirectAction(group_id=group),
    )


def _members(group: P4ActionProfileGroup) -> list[P4Member]:
    # The order matters, because the hash indexes it.
    return list(group.members or ())
