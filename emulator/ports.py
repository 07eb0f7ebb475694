"""The ports of a switch: which of them are up, and who is told when that changes."""

from collections.abc import Callable, Iterable, Iterator

CPU_PORT = 510
"""A packet that leaves by this port goes to the control plane, and what that sends comes in by it; unless told else."""

DROP_PORT = 511
"""What ``mark_to_drop`` gives a packet as its egress port, unless told else."""

NUM_PORTS = 512
"""v1model numbers ports with 9 bits."""

PortListener = Callable[[int, bool], None]
"""Told the number of a port and whether it is up now."""


class Ports:
    """Ports by number, all up at first. They are the hardware's: no pipeline that is set changes them."""

    def __init__(self, numbers: Iterable[int]) -> None:
        self._up = dict.fromkeys(numbers, True)
        self._listeners: list[PortListener] = []

    def __iter__(self) -> Iterator[int]:
        return iter(self._up)

    def __contains__(self, port: object) -> bool:
        return port in self._up

    def is_up(self, port: int) -> bool:
        """Whether packets leave by a port. Raises KeyError for one that is not there."""
        return self._up[port]

    def set(self, port: int, up: bool) -> bool:
        """Take a port down or bring it up; False where it was so before. Raises KeyError for one that is not there."""
        if self._up[port] == up:
            return False
        self._up[port] = up
        for listener in tuple(self._listeners):
            listener(port, up)
        return True

    def listen(self, listener: PortListener) -> Callable[[], None]:
        """Tell ``listener`` of every change from now on, until what is returned is called."""
        self._listeners.append(listener)
        return lambda: self._listeners.remove(listener)
