"""Name ports and cables as a fabric file does."""

from controller.links.port_states import Port
from topologies.fabric import Fabric


def port_words(fabric: Fabric, port: Port) -> str:
    """Return a port, or a NIC of a host, with the name that its node has for it, as ends of cables in a fabric file."""
    node, number = port
    return f"{node}:{fabric.port_names[node].get(number, number)}"


def cable_words(fabric: Fabric, link: int) -> str:
    """Return the ends of a cable, given as either of its directions."""
    ends = fabric.links[link & ~1]
    first = port_words(fabric, (ends.source, ends.source_port))
    return f"{first} - {port_words(fabric, (ends.destination, ends.destination_port))}"
