"""The groups of a switch: one for every port, one for every set of ports that ECMP chooses among, and those of rules.

A group's id is computed from its ports, so it never changes its meaning under an entry that leads to it. Ids of the
three types lie in ranges of their own. No group leads to another one, which many switches cannot do.

**The hash.** The switches of two tiers must choose independently of each other, or a switch of the second tier gets
only flows that agree in their hash, and uses some of its ports not at all (polarisation). The hash basis of a switch is
its hash multiplier: a random number of 32 bits, drawn for each switch by itself, and the same on every machine and
after every restart. The numbers of switches would not do: they are small and follow each other, and the datapath of
another switch may mix them in poorly.

**The buckets.** Open vSwitch hashes into a table of 2^n slots, at least as many as there are buckets, and at least 16
(``group_setup_dp_hash_table`` in ``ofproto-dpif.c``). Five buckets get 4, 3, 3, 3 and 3 of 16 slots: one port of five
would carry a quarter more than its share. Where the number of ports is no power of two, a SELECT group therefore has
several buckets for every port.
"""

import zlib
from collections.abc import Iterable, Iterator, Mapping
from functools import lru_cache
from itertools import chain, repeat

from controller.southbound.openflow.entries import Forward, Group, GroupType
from topologies.addressing import BROADCAST_MAC, MAX_PORTS_PER_SWITCH, Address, MacAddress, switch_mac
from topologies.fabric import Fabric, Link, Nic
from topologies.routing import Routing

Ports = tuple[int, ...]
"""The ports of a group, in order."""

_SELECT_IDS = 1 << 30
_FAILOVER_IDS = 2 << 30
_MEASURING_IDS = 3 << 30
"""The first ids of a range. The id of an INDIRECT group is its port."""
_MOST_IDS = 1 << 29
"""Of a range: it ends before the numbers that OpenFlow reserves."""

_MAX_SLOTS = 256
"""Open vSwitch hashes into as many at most (``MAX_SELECT_GROUP_HASH_VALUES``)."""
_MIN_SLOTS = 16
_UNEVENNESS = 0.07
"""How far the share of a port may be from an even one, as a part of it."""


def is_own(group_id: int) -> bool:
    """Return whether a group is in the ranges of ours; others are somebody else's."""
    return 0 < group_id <= MAX_PORTS_PER_SWITCH or _SELECT_IDS <= group_id < _MEASURING_IDS + _MOST_IDS


def is_of_port(group_id: int) -> bool:
    """Return whether a group sends by one port, which has its number."""
    return group_id < _SELECT_IDS


def is_of_rules(group_id: int) -> bool:
    """Return whether a group is one that rules lead to."""
    return group_id >= _FAILOVER_IDS


def port_groups(switch: str, fabric: Fabric) -> dict[int, Group]:
    """Return the INDIRECT groups of a switch by port: one for each cable.

    Where the MAC of a NIC is not known, the group has the broadcast address; see ``neighbour_groups``.
    """
    return {link.source_port: _port_group(_forward(link, fabric)) for link in fabric.links_from[switch]}


def select_groups(
    switch: str, routing: Routing, choices: Iterable[Ports], first_id: int = _SELECT_IDS
) -> dict[Ports, Group]:
    """Return the SELECT groups of a switch that choose among these ports by hash."""
    forwards = _forwards(switch, routing.fabric)
    basis = routing.hash_multipliers[switch]
    return {
        ports: Group(group_id, GroupType.SELECT, _repeated([forwards[port] for port in ports]), basis)
        for ports, group_id in _group_ids(choices, first_id).items()
    }


def measuring_groups(switch: str, routing: Routing, choices: Iterable[Ports]) -> dict[Ports, Group]:
    """Return groups that choose as ``select_groups``, by which the packets of a job alone go while it is measured."""
    return select_groups(switch, routing, choices, _MEASURING_IDS)


def failover_groups(switch: str, fabric: Fabric, orders: Iterable[Ports]) -> dict[Ports, Group]:
    """Return the FAST_FAILOVER groups of a switch that send by the first of these ports that is up."""
    forwards = _forwards(switch, fabric)
    return {
        ports: Group(group_id, GroupType.FAST_FAILOVER, tuple(forwards[port] for port in ports))
        for ports, group_id in _group_ids(orders, _FAILOVER_IDS).items()
    }


def neighbour_groups(switch: str, fabric: Fabric, macs: Mapping[Address, MacAddress]) -> list[Group]:
    """Return the groups of ports to NICs whose MACs were learned; ``port_groups`` has the broadcast address there.

    A NIC has one cable, so the last switch has one way to it, and no other group leads there.
    """
    return [
        _port_group(_forward(link, fabric, macs[nic.address]))
        for link, nic in _links_to_nics(switch, fabric)
        if nic.mac is None and nic.address in macs
    ]


def unknown_neighbours(switch: str, fabric: Fabric) -> list[Group]:
    """Return the groups of ports to NICs whose MACs have to be learned, with the broadcast address."""
    return [_port_group(_forward(link, fabric)) for link, nic in _links_to_nics(switch, fabric) if nic.mac is None]


def is_known_neighbour(group: Group, unknown: Group) -> bool:
    """Return whether a group is that of a port to a neighbour, in the place of one to an unknown neighbour."""
    if not (group.kind is unknown.kind is GroupType.INDIRECT and len(group.buckets) == 1):
        return False
    (bucket,), (other,) = group.buckets, unknown.buckets
    return (
        group.group_id == unknown.group_id
        and (bucket.port, bucket.source_mac) == (other.port, other.source_mac)
        and bucket.destination_mac.is_of_one_nic
    )


def macs_of_neighbours(switch: str, fabric: Fabric, groups: Iterable[Group]) -> Iterator[tuple[Address, MacAddress]]:
    """Yield the addresses and MACs of the NICs that such groups lead to."""
    nic_at = {link.source_port: nic for link, nic in _links_to_nics(switch, fabric)}
    for group in groups:
        (bucket,) = group.buckets
        yield nic_at[bucket.port].address, bucket.destination_mac


def _port_group(forward: Forward) -> Group:
    return Group(forward.port, GroupType.INDIRECT, (forward,))


def _forwards(switch: str, fabric: Fabric) -> dict[int, Forward]:
    return {link.source_port: _forward(link, fabric) for link in fabric.links_from[switch]}


def _forward(link: Link, fabric: Fabric, destination_mac: MacAddress | None = None) -> Forward:
    source_mac = switch_mac(fabric.switch_index[link.source], link.source_port)
    return Forward(link.source_port, source_mac, destination_mac or _neighbour_mac(link, fabric))


def _neighbour_mac(link: Link, fabric: Fabric) -> MacAddress:
    if link.destination in fabric.host_index:
        return fabric.nics[link.destination][link.destination_port].mac or MacAddress(BROADCAST_MAC)
    given = fabric.identity[link.destination].mac
    return given or switch_mac(fabric.switch_index[link.destination], link.destination_port)


def _links_to_nics(switch: str, fabric: Fabric) -> Iterator[tuple[Link, Nic]]:
    for link in fabric.links_from[switch]:
        if link.destination in fabric.host_index:
            yield link, fabric.nics[link.destination][link.destination_port]


def _group_ids(groups: Iterable[Ports], first: int) -> dict[Ports, int]:
    """Return an id for every group, computed from its ports."""
    ids: dict[Ports, int] = {}
    taken: set[int] = set()
    most = _MOST_IDS if first == _MEASURING_IDS else _SELECT_IDS
    for ports in sorted(set(groups)):
        offset = zlib.crc32(b"".join(port.to_bytes(2, "big") for port in ports)) % most
        while offset in taken:
            offset = (offset + 1) % most
        taken.add(offset)
        ids[ports] = first + offset
    return ids


def _repeated(forwards: list[Forward]) -> tuple[Forward, ...]:
    """Return the buckets of ports, in turns."""
    return tuple(chain.from_iterable(repeat(forwards, _buckets_per_port(len(forwards)))))


@lru_cache
def _buckets_per_port(num_ports: int) -> int:
    """Return the fewest buckets that give each port an even share of the slots, or the best that there is."""
    possible = range(1, max(1, _MAX_SLOTS // num_ports) + 1)
    even = (times for times in possible if _unevenness(num_ports, times) <= _UNEVENNESS)
    return next(even, min(possible, key=lambda times: _unevenness(num_ports, times)))


def _unevenness(num_ports: int, times: int) -> float:
    """Return how far the share of a port is from an even one, at most, where each has so many buckets in turns."""
    num_buckets = num_ports * times
    num_slots = max(_MIN_SLOTS, 1 << (num_buckets - 1).bit_length())
    # Each bucket has as many slots as the next one, or, those in front, one more.
    each, more = divmod(num_slots, num_buckets)
    slots = [each + (bucket < more) for bucket in range(num_buckets)]
    of_port = [sum(slots[port::num_ports]) for port in (0, num_ports - 1)]  # the most and the least
    return max(abs(own * num_ports / num_slots - 1) for own in of_port)
