"""The table ``ecmp`` of Tofino's program, which stands in for a selector: groups of slots that the controller fills.

A route has the number of its group and a mask of the hash, which gives the slot. The hash, and how many slots a group
has, are in ``topologies.ecmp``.
"""

import zlib
from collections.abc import Iterable
from functools import lru_cache

from finsy import P4TableAction, P4TableEntry, P4TableMatch

from topologies.ecmp import num_slots
from topologies.routing import Route

SLOT_TABLE = "ecmp"

MAX_GROUPS = 1 << 8
"""Groups of one switch: their numbers have eight bits."""

Ports = tuple[int, ...]
"""Members of a group, in the order that the hash indexes."""


class GroupNumbers:
    """The numbers of the groups of one switch.

    A group keeps its number as long as 256 of them last, so that no number changes its meaning under a route. It
    follows from the members where no other group has taken it, so that most numbers outlive the controller.
    """

    def __init__(self) -> None:
        self._known: dict[Ports, int] = {}
        """Those that were wanted last stand behind."""

    def of(self, groups: Iterable[Ports]) -> dict[Ports, int]:
        """Return the numbers of these groups, 256 and more for those that the switch has no room for."""
        known = {ports: number for ports, number in self._known.items() if number < MAX_GROUPS}
        wanted = sorted(set(groups))
        for ports in wanted:
            if ports in known:
                known[ports] = known.pop(ports)
        for ports in wanted:
            if ports not in known:
                oldest = next(iter(known), ports)
                if len(known) >= MAX_GROUPS and oldest not in wanted:
                    del known[oldest]
                known[ports] = _free_number(ports, frozenset(known.values()))
        self._known = known
        return {ports: known[ports] for ports in wanted}


def _free_number(ports: Ports, taken: frozenset[int]) -> int:
    first = zlib.crc32(b"".join(port.to_bytes(2, "big") for port in ports))
    numbers = ((first + step) % MAX_GROUPS for step in range(MAX_GROUPS))
    return next((number for number in numbers if number not in taken), max(taken, default=0) + 1)


def slot_entries(group: int, ports: Ports) -> list[P4TableEntry]:
    """Return the slots of a group."""
    return [_slot(group, slot, ports[slot % len(ports)]) for slot in range(num_slots(len(ports)))]


def slot_route(route: Route, group: int) -> P4TableEntry:
    """Return the entry of a route with several links, whose group has this number."""
    return _route(route, P4TableAction("set_ecmp_group", group=group, slot_mask=num_slots(len(route.links)) - 1))


def plain_route(route: Route, port: int) -> P4TableEntry:
    """Return the entry of a route with one link, by this port."""
    return _route(route, P4TableAction("set_next_hop", next_hop=port))


def _route(route: Route, action: P4TableAction) -> P4TableEntry:
    match = P4TableMatch(destination_address=(route.address, route.prefix_length))
    return P4TableEntry("routing", match=match, action=action)


@lru_cache(1 << 18)  # most stay the same when a link dies; identical objects need no comparison
def _slot(group: int, slot: int, next_hop: int) -> P4TableEntry:
    return P4TableEntry(
        SLOT_TABLE,
        match=P4TableMatch(group=group, slot=slot),
        action=P4TableAction("set_next_hop", next_hop=next_hop),
    )
