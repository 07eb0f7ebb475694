"""Port states of a switch, and notification of their changes."""

from collections.abc import Callable, Iterable, Iterator
from enum import Enum, auto

from topologies.fabric import Fabric
from topologies.targets import TARGETS, Target

CPU_PORT = 510
"""Default port to and from the control plane."""

DROP_PORT = 511
"""Default egress port that ``mark_to_drop`` sets."""

NUM_PORTS = 512
"""Number of ports: v1model has 9-bit port numbers."""


class PortChange(Enum):
    """What has changed of a port: whether it is up, or whether it is enabled."""

    UP = auto()
    ENABLED = auto()


PortListener = Callable[[int, PortChange], None]
"""Callback with the number of a port and what has changed of it."""


class Ports:
    """Ports by number, all enabled and up at first.

    They belong to the hardware: neither setting a pipeline nor a loss of power changes which are enabled.
    """

    def __init__(self, numbers: Iterable[int]) -> None:
        self._up = dict.fromkeys(numbers, True)
        self._enabled = dict.fromkeys(self._up, True)
        self._listeners: list[PortListener] = []

    def __iter__(self) -> Iterator[int]:
        return iter(self._up)

    def __contains__(self, port: object) -> bool:
        return port in self._up

    def is_up(self, port: int) -> bool:
        """Return whether a port is up. Raises KeyError for an unknown port."""
        return self._up[port]

    def set(self, port: int, up: bool) -> bool:
        """Take a port down or bring it up; return whether that changed it. Raises KeyError for an unknown port."""
        if self._up[port] == up:
            return False
        self._up[port] = up
        self._tell(port, PortChange.UP)
        return True

    def is_enabled(self, port: int) -> bool:
        """Return whether a port may be up. Raises KeyError for an unknown port."""
        return self._enabled[port]

    def enable(self, port: int, enabled: bool) -> bool:
        """Say whether a port may be up; return whether that changed. Raises KeyError for an unknown port."""
        if self._enabled[port] == enabled:
            return False
        self._enabled[port] = enabled
        self._tell(port, PortChange.ENABLED)
        return True

    def listen(self, listener: PortListener) -> Callable[[], None]:
        """Call ``listener`` at every change, until the returned function is called."""
        self._listeners.append(listener)
        return lambda: self._listeners.remove(listener)

    def _tell(self, port: int, change: PortChange) -> None:
        for listener in tuple(self._listeners):
            listener(port, change)


def spare_ports(fabric: Fabric, switch: str) -> list[int]:
    """Return the ports that the fabric file gives a switch and that have no cable: they are there, and down."""
    cabled = {link.source_port for link in fabric.links_from[switch]}
    return [port for port in fabric.port_names.get(switch, {}) if port not in cabled]


def require_free(fabric: Fabric, what: str, port: int) -> None:
    """Raise ValueError, which names what a port is for, where there is no such port or a switch has a cable there."""
    if not 0 <= port < NUM_PORTS:
        raise ValueError(f"the {what} must be within 0 to {NUM_PORTS - 1}, not {port}")
    for switch in fabric.switches:
        if any(link.source_port == port for link in fabric.links_from[switch]):
            raise ValueError(f"the {what} cannot be {port}: switch {switch!r} has a cable there")
        if port in spare_ports(fabric, switch):
            raise ValueError(f"the {what} cannot be {port}: switch {switch!r} has a port of that number")


def require_emulated(fabric: Fabric) -> None:
    """Raise ValueError where a switch of ours has another target, whose hash and units the emulator does not have."""
    for switch, identity in fabric.identity.items():
        if TARGETS[identity.target] is not TARGETS[Target.EMULATOR]:
            raise ValueError(
                f"switch {switch!r} has target: {identity.target}; the emulator executes the program for bmv2 alone"
            )
