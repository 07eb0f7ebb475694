"""What the fabric file says of the ports of switches, made once: comparisons come several times a second."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Self

from controller.links.port_states import Port
from topologies.fabric import Fabric, Link


@dataclass(frozen=True, slots=True)
class Cabling:
    """The cables at switches, as the file has them.

    Attributes:
        fabric: Of the file.
        between: Both directions of the cables between switches.
        sender_to: By port with such a cable, the port at the other end, whose beacons should arrive there.
        link_from: The link out of each port of a switch that has a cable.
    """

    fabric: Fabric
    between: tuple[Link, ...]
    sender_to: Mapping[Port, Port]
    link_from: Mapping[Port, Link]

    @classmethod
    def of(cls, fabric: Fabric) -> Self:
        """Return the cabling of a fabric."""
        switches = fabric.switch_index.keys()
        between = tuple(link for link in fabric.links if {link.source, link.destination} <= switches)
        return cls(
            fabric,
            between,
            {end_of(link): start_of(link) for link in between},
            {start_of(link): link for link in fabric.links if link.source in switches},
        )


def start_of(link: Link) -> Port:
    """Return the port that a link leaves by."""
    return link.source, link.source_port


def end_of(link: Link) -> Port:
    """Return the port that a link arrives at."""
    return link.destination, link.destination_port
