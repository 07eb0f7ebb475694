"""Probes of a pair that have not come, by port: hosts probe the ports that they keep in turn."""

import math
from collections import OrderedDict
from collections.abc import Sequence, Set
from typing import NamedTuple

from hostlib.telemetry.prober import CONFIRMATIONS


class Missed(NamedTuple):
    """How many probes of a port have not come since the last that did, and when the last two were found missing."""

    probes: int = 0
    last_s: float = -math.inf
    before_s: float = -math.inf


_NONE = Missed()


class Misses:
    """What is missing of the ports of one pair; times are those at which later probes came."""

    def __init__(self) -> None:
        self._by_port: dict[int, Missed] = {}
        self._turns: OrderedDict[int, int] = OrderedDict()
        """Ports that are kept, in the order of their turns, with the numbers of the probes heard of then."""
        self._newest = -1
        """The highest number of all, that of a port which is kept no longer included."""

    @property
    def ports(self) -> Set[int]:
        """Ports of which any are missing."""
        return self._by_port.keys()

    def of(self, port: int) -> Missed:
        """What is missing of a port."""
        return self._by_port.get(port, _NONE)

    def take_turn(self, port: int, port_sequence: int, number: int) -> Sequence[int]:
        """A port is heard of; which ones are missing, as their turn was before its own.

        A host probes each again after the same time. What it sends of a new port at once is out of turn. ``number``
        counts the pair's probes: turns are in the order of sending, whichever way probes overtook each other on.
        """
        turns, passed_over = self._turns, list[int]()
        if number < self._newest:
            self._overtaken(port, number)
            return passed_over
        self._newest = number
        if port_sequence > CONFIRMATIONS and port in turns:
            while (before := next(iter(turns))) != port:
                turns.move_to_end(before)
                passed_over.append(before)
        turns[port] = number
        turns.move_to_end(port)
        return passed_over

    def _overtaken(self, port: int, number: int) -> None:
        """A port is heard of after others whose turn was behind its own: they have passed it over already."""
        turns, overtakers = self._turns, list[int]()
        if turns.get(port, -1) >= number:
            return
        turns[port] = number
        for other in reversed(turns):
            if turns[other] < number:
                break
            overtakers.append(other)
        turns.move_to_end(port)
        for other in reversed(overtakers):
            if other != port:
                turns.move_to_end(other)

    def miss(self, port: int, now_s: float) -> None:
        """Another probe of a port has not come."""
        known = self.of(port)
        self._by_port[port] = Missed(known.probes + 1, now_s, known.last_s)

    def come(self, port: int) -> None:
        """One has come."""
        self._by_port.pop(port, None)

    def forget(self, port: int) -> None:
        """A port is not kept any longer."""
        self._by_port.pop(port, None)
        self._turns.pop(port, None)

    def forgive(self) -> None:
        """Nothing is known to be missing until now."""
        self._by_port.clear()
