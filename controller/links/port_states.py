"""What switches have said of their ports, whoever carries it here, and who waits for it."""

import asyncio
from collections.abc import Collection, Iterable, Mapping
from types import MappingProxyType

from controller.links.link_health import PortStates

Port = tuple[str, int]
"""A switch and the number of a port of its."""


class HeardPorts:
    """The states of the ports of these switches, as far as each is heard from."""

    def __init__(self, switches: Iterable[str]) -> None:
        self.switches = frozenset(switches)
        self._states: dict[str, Mapping[int, bool]] = {}
        self.news = asyncio.Event()
        """Set when something else is heard than before; then there is another one for what is heard after that."""

    @property
    def states(self) -> PortStates:
        """Whether ports are up, by switch; of those that are not heard from, nothing."""
        return MappingProxyType(self._states)

    def hear(self, switch: str, ports: Mapping[int, bool]) -> None:
        """A switch says so of all its ports."""
        self._states[switch] = dict(ports)
        self._tell()

    def forget(self, switch: str) -> None:
        """A switch is heard from no longer."""
        if self._states.pop(switch, None) is not None:
            self._tell()

    async def all_heard(self) -> None:
        """Return once all switches are heard from."""
        while self._states.keys() != self.switches:
            await self.news.wait()

    async def caught_up(self, down: Collection[Port], silent: Collection[str] = ()) -> None:
        """Return once all switches but the ``silent`` ones are heard from, and these ports are those that are down."""
        expected = self.switches.difference(silent)
        while self._states.keys() != expected or self._down() != set(down):
            await self.news.wait()

    def _down(self) -> set[Port]:
        return {(switch, port) for switch, ports in self._states.items() for port, is_up in ports.items() if not is_up}

    def _tell(self) -> None:
        news, self.news = self.news, asyncio.Event()
        news.set()
