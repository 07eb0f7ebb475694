"""Which links of a fabric carry packets: those whose cable, ports, switches and carrier are all up."""

from collections.abc import Callable, Mapping

from emulator.engine import state as s
from emulator.engine.queues import flush
from emulator.parts import Parts
from emulator.switch import EmulatedSwitch
from topologies.fabric import Fabric


class Links:
    """Links in both directions of every cable, all up at first.

    Attributes:
        follow: Called with each link whose cable, switches or ports have changed, once the link is set.
    """

    def __init__(self, fabric: Fabric, parts: Parts, switches: Mapping[str, EmulatedSwitch]) -> None:
        self._fabric = fabric
        self._parts = parts
        self._switches = switches
        self._is_cable_up = [True] * len(fabric.links)
        self._has_carrier = [True] * len(fabric.links)
        self.follow: Callable[[int], None] | None = None

    def set_cable(self, link: int, up: bool) -> None:
        """Take one direction of a cable down or up."""
        self._is_cable_up[link] = up
        self._change(link)

    def set_switch(self, switch: str, up: bool) -> None:
        """Take a switch down with all its links, or bring it up empty."""
        found = self._switches[switch]
        if found.power.is_on == up:
            return
        if up:
            found.power.turn_on()
        else:
            found.shut_down()
        for link in self._fabric.links:
            if switch in (link.source, link.destination):
                self._change(link.index)

    def set_port(self, switch: str, port: int, enabled: bool) -> None:
        """Disable a switch's port with both directions of its cable, or enable it."""
        if self._switches[switch].ports.enable(port, enabled):
            for link in self._fabric.links_from[switch]:
                if link.source_port == port:
                    self._change(link.index)
                    self._change(self._fabric.reverse(link.index))

    def set_carrier(self, link: int, has_carrier: bool) -> None:
        """Say whether what is attached to a link has a carrier; ``update`` must follow."""
        self._has_carrier[link] = has_carrier

    def has_carrier(self, link: int) -> bool:
        """Return whether what is attached to a link has a carrier."""
        return self._has_carrier[link]

    def is_up(self, link: int) -> bool:
        """Return whether a link carries packets."""
        return bool(self._parts.first.links[link, s.LINK_UP])

    def is_wanted(self, link: int) -> bool:
        """Return whether a link's cable is up, the switches at its ends are on, and their ports are enabled."""
        end = self._fabric.links[link]
        ends = (end.source, end.source_port), (end.destination, end.destination_port)
        at = [(self._switches[name], port) for name, port in ends if name in self._switches]
        return self._is_cable_up[link] and all(
            switch.power.is_on and switch.ports.is_enabled(port) for switch, port in at
        )

    def update(self, link: int) -> None:
        """Set a link up or down, as it now should be; what waits for a link that goes down is lost."""
        end, up = self._fabric.links[link], self._has_carrier[link] and self.is_wanted(link)
        for state in self._parts.states:
            state.links[link, s.LINK_UP] = up
        if not up:
            flush(self._parts.with_source(link), link, s.LINK_DOWN)
        if end.source in self._switches:
            self._switches[end.source].set_port(end.source_port, up)

    def _change(self, link: int) -> None:
        self.update(link)
        if self.follow is not None:
            self.follow(link)
