"""Collect the port states that switches report, and wake those that wait for a change."""

import asyncio
from collections.abc import Collection, Iterable, Mapping
from types import MappingProxyType

from controller.links.link_health import PortStates
from controller.notice import Notice

Port = tuple[str, int]
"""A switch and a port number."""


class PortStateTable:
    """The last reported port states of these switches; a switch that is not connected has none."""

    def __init__(self, switches: Iterable[str]) -> None:
        self.switches = frozenset(switches)
        self._states: dict[str, Mapping[int, bool]] = {}
        self._notice = Notice()

    @property
    def states(self) -> PortStates:
        """Whether ports are up, by switch."""
        return MappingProxyType(self._states)

    @property
    def changed(self) -> asyncio.Event:
        """Set at the next change. Each change replaces it, so take it before you read ``states``."""
        return self._notice.next

    def set_ports(self, switch: str, ports: Mapping[int, bool]) -> None:
        """Set the states of all ports of a switch."""
        self._states[switch] = dict(ports)
        self._notice.tell()

    def follow(self, switches: Iterable[str]) -> None:
        """Have the states of these switches from now on, and of no others."""
        self.switches = frozenset(switches)
        for switch in self._states.keys() - self.switches:
            self.remove(switch)

    def remove(self, switch: str) -> None:
        """Remove the ports of a switch that is not connected any longer."""
        if self._states.pop(switch, None) is not None:
            self._notice.tell()

    async def all_heard(self) -> None:
        """Return once all switches are heard from."""
        while self._states.keys() != self.switches:
            await self.changed.wait()

    async def caught_up(self, down: Collection[Port], silent: Collection[str] = ()) -> None:
        """Return once all switches but the ``silent`` ones are heard from, and these ports are those that are down."""
        expected = self.switches.difference(silent)
        while self._states.keys() != expected or self._down() != set(down):
            await self.changed.wait()

    def _down(self) -> set[Port]:
        return {(switch, port) for switch, ports in self._states.items() for port, is_up in ports.items() if not is_up}
