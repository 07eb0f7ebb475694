"""Writes base routing straight into emulated switches, where there is no controller."""

from collections.abc import Container

from emulator.entries import ActionCall, EntryKey, FieldMatch, GroupReference
from emulator.fabric import EmulatedFabric
from emulator.switch import EmulatedSwitch
from topologies.addressing import FiveTuple, switch_mac
from topologies.routing import Routing


def install_routing(emulated: EmulatedFabric, routing: Routing, only: Container[str] | None = None) -> None:
    """Configure every switch, or ``only`` these, and write their routes to all hosts."""
    for name, switch in emulated.switches.items():
        if only is None or name in only:
            _install(switch, routing, name)


def steer(switch: EmulatedSwitch, five_tuple: FiveTuple, port: int, level: int) -> None:
    """Write one flow entry with a next hop and a level."""
    values = (
        (five_tuple.source_address, 32),
        (five_tuple.destination_address, 32),
        (five_tuple.protocol, 8),
        (five_tuple.source_port, 16),
        (five_tuple.destination_port, 16),
    )
    key = EntryKey(tuple(FieldMatch(value, (1 << bits) - 1) for value, bits in values))
    switch.insert("ingress.flow", key, ActionCall("ingress.steer_and_prioritise", (port, level)))


def _install(switch: EmulatedSwitch, routing: Routing, name: str) -> None:
    fabric = routing.fabric
    switch.clear()
    switch.set_default("ingress.node", ActionCall("ingress.set_node", (routing.hash_multipliers[name],)))
    for level in range(1, 8):
        match = EntryKey((FieldMatch(8 * level, 0x3F),))
        switch.insert("ingress.level", match, ActionCall("ingress.set_level", (level,)))
    for link in fabric.links_from[name]:
        port = link.source_port
        macs = (switch_mac(fabric.switch_index[name], port), 0)
        switch.insert(
            "ingress.next_hop", EntryKey((FieldMatch(port, 0xFFFF),)), ActionCall("ingress.forward", (port, *macs))
        )
        switch.insert_member("ingress.ecmp", port, ActionCall("ingress.set_next_hop", (port,)))
    groups: dict[tuple[int, ...], int] = {}
    for route in routing.routes(name):
        if route.links not in groups:
            groups[route.links] = len(groups) + 1
            ports = tuple(fabric.links[link].source_port for link in route.links)
            switch.insert_group("ingress.ecmp", groups[route.links], ports, 0)
        mask = (1 << 32) - (1 << 32 - route.prefix_length)
        switch.insert(
            "ingress.routing", EntryKey((FieldMatch(route.address, mask),)), GroupReference(groups[route.links])
        )
