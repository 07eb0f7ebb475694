"""Interfaces at the NICs of a fabric: links go down with them, and they go down with links."""

import logging
import socket
from collections.abc import Mapping

from emulator.engine import state as s
from emulator.interfaces import Interfaces, watch
from emulator.links import Links
from emulator.parts import Parts
from emulator.wire_memory import know_interfaces
from topologies.fabric import Fabric

_LOG = logging.getLogger(__name__)


class WiredLinks:
    """The links to NICs that have an interface, their wire.

    Args:
        fabric: The topology.
        parts: The engine's arrays, attached to ``packets``.
        links: The links of the fabric.
        interfaces: The interfaces of the network namespace.
        packets: The packet socket, which watches the interfaces of wires.
        names: Names of interfaces by the links from their NICs.
    """

    def __init__(
        self,
        fabric: Fabric,
        parts: Parts,
        links: Links,
        interfaces: Interfaces,
        packets: socket.socket,
        names: Mapping[int, str],
    ) -> None:
        self._fabric = fabric
        self._parts = parts
        self._links = links
        self._interfaces = interfaces
        self._packets = packets
        self._names = names
        self._indexes = dict.fromkeys(names.values(), 0)

    def start(self) -> None:
        """Set interfaces as links are wanted, from now on, and take links down whose interfaces have no carrier."""
        self._links.follow = self._set_interface
        for link in self._names:
            self._links.update(link)
            self._set_interface(link)
        for link, name in self._names.items():
            if not self._interfaces.is_up(name):
                _LOG.warning("interface %s of %s has no carrier", name, nic_name(self._fabric, link))
                self._set_carrier(link, has_carrier=False)
        self.update()

    def update(self) -> None:
        """Take links up and down as interfaces are, and know interfaces that have come back under another index."""
        state, changed = self._parts.first, False
        for link, name in self._names.items():
            index = self._interfaces.index(name) or 0
            if index != self._indexes[name]:
                changed = True
                self._indexes[name] = index
                state.links[self._fabric.reverse(link), s.LINK_WIRE] = index
            has_carrier = self._interfaces.is_up(name)
            if has_carrier != self._links.has_carrier(link):
                what = "is up" if has_carrier else "is down" if index else "is gone"
                _LOG.warning("interface %s of %s %s", name, nic_name(self._fabric, link), what)
                self._set_carrier(link, has_carrier)
        if changed:
            know_interfaces(state.wires, {self._indexes[name]: link for link, name in self._names.items()})
            watch(self._packets, filter(None, self._indexes.values()))

    def end(self) -> None:
        """Leave interfaces as they are from now on."""
        self._links.follow = None

    def _set_interface(self, link: int) -> None:
        """Take the interface at the end of a link up or down, if there is one, as both directions are wanted."""
        from_nic = link if link in self._names else self._fabric.reverse(link)
        if from_nic in self._names:
            both = (from_nic, self._fabric.reverse(from_nic))
            self._interfaces.set_up(self._names[from_nic], up=all(map(self._links.is_wanted, both)))

    def _set_carrier(self, link: int, has_carrier: bool) -> None:
        for direction in (link, self._fabric.reverse(link)):
            self._links.set_carrier(direction, has_carrier)
            self._links.update(direction)


def link_of(fabric: Fabric, host: str, nic: int) -> int:
    """Return the link from a host's NIC. Raises ValueError where there is no such NIC."""
    for found in fabric.nics.get(host, ()):
        if found.index == nic:
            return found.link
    raise ValueError(f"the topology has no NIC {host}.{nic}")


def nic_name(fabric: Fabric, link: int) -> str:
    """Return the name of the NIC from which a link leads: ``HOST.NUMBER``."""
    found = fabric.links[link]
    return f"{found.source}.{found.source_port}"
