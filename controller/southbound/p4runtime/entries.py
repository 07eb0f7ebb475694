"""Make P4Runtime entries of the pipeline in ``p4src/``: base routing and rules.

Names are P4Info's aliases. A next hop has the number of the port it leaves by, and so has its member of the selector.
"""

import zlib
from collections.abc import Iterable
from enum import IntEnum
from functools import lru_cache
from typing import NamedTuple

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
from topologies.addressing import HOST_MASK, switch_mac
from topologies.fabric import Fabric, Link
from topologies.routing import Route, Routing

Entity = P4TableEntry | P4ActionProfileMember | P4ActionProfileGroup

_SELECTOR = "ecmp"
_LEVELS = range(1, 8)
_DSCP_OF_CLASS = 8
"""Class selector n, CSn, is DSCP 8n."""

_FOREIGN_BITS = (0, 2, 4, 6)
"""Values of DSCP bits 2 and 1, which are not ours: bits 5..3 tell the level in any case. Bit 0 announces INT."""

MARKING_DEPTH_PACKETS = 12
"""Queue depth from which packets get an ECN mark, for hosts that react to it."""


class EntityKind(IntEnum):
    """The kinds of entities; an entity refers only to entities of smaller kinds."""

    SETTING = 0  # the default entry of a table
    LEVEL = 1
    NEXT_HOP = 2
    MEMBER = 3
    GROUP = 4
    ROUTING = 5
    JOB = 6
    FLOW = 7


RULES = EntityKind.JOB, EntityKind.FLOW
"""The kinds that a Plan asks for."""

FLOW_TABLE = "flow"
JOB_TABLE = "job"

JOB_PRIORITY = 4790
"""The P4Runtime priority of the controller's entries of JOB_TABLE; entries with another one are the operator's."""

TABLES = {
    "level": EntityKind.LEVEL,
    "next_hop": EntityKind.NEXT_HOP,
    "routing": EntityKind.ROUTING,
    JOB_TABLE: EntityKind.JOB,
    FLOW_TABLE: EntityKind.FLOW,
}
"""Tables whose entries belong to the controller. Those of other tables are the operator's, and left alone."""

SETTINGS = ("node", "node_id", "ecn")
"""Tables whose default entry belongs to the controller."""

Ports = tuple[int, ...]
"""Members of a group, in the order that the hash indexes."""

_WHOLE_ADDRESS = 0xFFFF_FFFF

MatchValue = int | tuple[int, int]


class EntityKey(NamedTuple):
    """The identity of an entity on its switch: its kind, and its id, its table's name or its match fields by name."""

    kind: EntityKind
    identity: int | str | tuple[tuple[str, MatchValue], ...]


def key_of(entity: Entity) -> EntityKey:
    """Return the identity of an entity.

    Raises:
        ValueError: The pipeline has no such table.
    """
    # Table entries first: most are, and to match an abstract class takes long.
    match entity:
        case P4TableEntry() if entity.is_default_action:
            return EntityKey(EntityKind.SETTING, entity.table_id)
        case P4TableEntry() if entity.table_id in TABLES:
            return EntityKey(TABLES[entity.table_id], tuple(sorted((entity.match or {}).items())))
        case P4TableEntry():
            raise ValueError(f"table {entity.table_id!r} is not one of {', '.join(TABLES)}")
        case P4ActionProfileMember():
            return EntityKey(EntityKind.MEMBER, entity.member_id)
        case P4ActionProfileGroup():
            return EntityKey(EntityKind.GROUP, entity.group_id)


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
    return [
        _setting("node", "set_node", hash_multiplier=routing.hash_multipliers[switch]),
        _setting("node_id", "set_node_id", node_id=fabric.switch_index[switch] + 1),
        _setting("ecn", "mark_from", depth_packets=MARKING_DEPTH_PACKETS),
        *(_level(level, foreign_bits) for level in _LEVELS for foreign_bits in _FOREIGN_BITS),
        *(_next_hop(link, fabric) for link in leaving),
        *(_member(link) for link in leaving),
    ]


def route_entries(switch: str, routing: Routing) -> list[Entity]:
    """Return the base entries that do: routes and their ECMP groups."""
    fabric = routing.fabric
    routes = routing.routes(switch)
    groups = _group_ids({_ports(route, fabric) for route in routes})
    return [
        *(_group(group_id, ports) for ports, group_id in groups.items()),
        *(_route(route, groups[_ports(route, fabric)]) for route in routes),
    ]


def flow_entry(rule: FlowRule, fabric: Fabric) -> P4TableEntry:
    """Return the entry that carries out a flow rule."""
    five_tuple = rule.five_tuple
    match = P4TableMatch(
        source_address=five_tuple.source_address,
        destination_address=five_tuple.destination_address,
        protocol=five_tuple.protocol,
        source_port=five_tuple.source_port,
        destination_port=five_tuple.destination_port,
    )
    next_hop = None if rule.next_link is None else fabric.links[rule.next_link].source_port
    action = _flow_action(next_hop, rule.level)
    return P4TableEntry(FLOW_TABLE, match=match, action=action)


@lru_cache(1 << 14)  # few differ, and every rule has one
def _flow_action(next_hop: int | None, level: int | None) -> P4TableAction:
    if next_hop is None:
        return P4TableAction("prioritise", level=level)
    if level is None:
        return P4TableAction("steer", next_hop=next_hop)
    return P4TableAction("steer_and_prioritise", next_hop=next_hop, level=level)


def job_entry(rule: JobRule, fabric: Fabric) -> P4TableEntry:
    """Return the entry that carries out a job rule."""
    match = P4TableMatch(
        source_address=(rule.source_address, _WHOLE_ADDRESS),
        destination_address=(fabric.nics[rule.destination_host][0].address & HOST_MASK, HOST_MASK),
    )
    action = P4TableAction("prioritise_job", level=rule.level)
    return P4TableEntry(JOB_TABLE, match=match, action=action, priority=JOB_PRIORITY)


def next_hop_of(entity: Entity) -> int | None:
    """Return the next hop, which is also the port, that a flow rule steers to; None if it steers nowhere."""
    match entity:
        case P4TableEntry(table_id=table, action=P4TableAction() as action) if table == FLOW_TABLE:
            return action.args.get("next_hop")
    return None


def _setting(table: str, action: str, **arguments: int) -> P4TableEntry:
    return P4TableEntry(table, action=P4TableAction(action, **arguments), is_default_action=True)


def _level(level: int, foreign_bits: int) -> P4TableEntry:
    match = P4TableMatch(dscp=_DSCP_OF_CLASS * level + foreign_bits)
    return P4TableEntry("level", match=match, action=P4TableAction("set_level", level=level))


def _next_hop(link: Link, fabric: Fabric) -> P4TableEntry:
    return P4TableEntry(
        "next_hop",
        match=P4TableMatch(next_hop=link.source_port),
        action=P4TableAction(
            "forward",
            port=link.source_port,
            source_mac=switch_mac(fabric.switch_index[link.source], link.source_port),
            destination_mac=_neighbour_mac(link, fabric),
        ),
    )


def _neighbour_mac(link: Link, fabric: Fabric) -> int:
    if link.destination in fabric.host_index:
        return fabric.nics[link.destination][link.destination_port].mac
    return switch_mac(fabric.switch_index[link.destination], link.destination_port)


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
