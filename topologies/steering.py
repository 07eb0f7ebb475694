"""Steering by source port: find the port for which the fabric's hash sends a flow along a given path.

CRC-32 is linear: changing the port of a 5-tuple flips bits of its CRC that depend on the port alone. One CRC per flow
and one table for all flows are therefore enough to try ports.
"""

from collections.abc import Container
from dataclasses import replace
from enum import StrEnum
from functools import cache

from topologies.addressing import FIRST_SOURCE_PORT, LAST_SOURCE_PORT, Address, FiveTuple
from topologies.ecmp import flow_crc
from topologies.fabric import Path
from topologies.routing import Routing


class Steering(StrEnum):
    """How a flow leaves the path that the fabric's hash would give it."""

    RULE = "rule"
    SOURCE_PORT = "source_port"


def steered_five_tuple(
    five_tuple: FiveTuple, path: Path, routing: Routing, taken: Container[FiveTuple]
) -> FiveTuple | None:
    """Return the 5-tuple, not in ``taken``, with the lowest source port that the hash sends along ``path``.

    Returns None if no port from 49152 on does, or where a switch's hash is not known.
    """
    links = routing.fabric.links
    destination = routing.fabric.nic_by_address[five_tuple.destination_address]
    hops = []
    for link in path[1:]:  # the first link leaves the host
        switch = links[link].source
        choices = routing.hash_choices(switch, destination)
        if choices is None:
            return None
        if len(choices) > 1:
            first = choices.index(link)
            positions = {first, *(place for place in range(first, len(choices)) if choices[place] == link)}
            hops.append((routing.hashes[switch], len(choices), positions))
    first_crc = flow_crc(replace(five_tuple, source_port=FIRST_SOURCE_PORT))
    for offset, flipped in enumerate(_flipped_bits()):
        crc = first_crc ^ flipped
        if all(law.choice(crc, size) in positions for law, size, positions in hops):
            found = replace(five_tuple, source_port=FIRST_SOURCE_PORT + offset)
            if found not in taken:
                return found
    return None


@cache
def _flipped_bits() -> tuple[int, ...]:
    """Return the bits that each port from FIRST_SOURCE_PORT on flips in the CRC."""
    any_ports = FiveTuple(Address(0), Address(0), 0, 0, 0)
    crcs = [flow_crc(replace(any_ports, source_port=port)) for port in range(FIRST_SOURCE_PORT, LAST_SOURCE_PORT + 1)]
    return tuple(crc ^ crcs[0] for crc in crcs)
