"""Probes of a pair that have not come, by port: hosts probe the ports that they keep in turn."""

import math
from collections import OrderedDict
from collections.abc import Set
from dataclasses import dataclass

from hostlib.telemetry.prober import CONFIRMATIONS


@dataclass(frozen=True, slots=True)
class Missed:
    """How many probes of a port have not come since the last that did, and when the last two were found missing."""

    probes: int = 0
    last_s: float = -math.inf
    before_s: float = -math.inf


_NONE = Missed()


class Misses:
    """What is missing of the ports of one pair; times are those at which later probes came."""

    def __init__(self) -> None:
        self._by_port: dict[int, Missed] = {}
        self._turns: OrderedDict[int, None] = OrderedDict()
        """Ports that are kept, the one that was heard of longest ago first."""

    @property
    def ports(self) -> Set[int]:
        """Ports of which any are missing."""
        return self._by_port.keys()

    def of(self, port: int) -> Missed:
        """What is missing of a port."""
        return self._by_port.get(port, _NONE)

    def take_turn(self, port: int, port_sequence: int) -> list[int]:
        """A port is heard of; which ones are missing, as their turn was before its own.

        A host probes each again after the same time. What it sends of a new port at once is out of turn.
        """
        passed_over = []
        if port_sequence > CONFIRMATIONS and port in self._turns:
            while (before := next(iter(self._turns))) != port:
                self._turns.move_to_end(before)
                passed_over.append(before)
        self._turns[port] = None
        self._turns.move_to_end(port)
        return passed_over

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
