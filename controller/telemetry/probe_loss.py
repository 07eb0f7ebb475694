"""Track which ports of a pair lose probes, from the rounds in which hosts probe the ports they keep."""

import math
from collections import OrderedDict
from collections.abc import Sequence, Set
from typing import NamedTuple

from hostlib.telemetry.prober import CONFIRMATIONS


class PortLoss(NamedTuple):
    """Probes of a port lost since the last one that arrived, and when the last two losses were noticed."""

    probes: int = 0
    last_s: float = -math.inf
    before_s: float = -math.inf


_NO_LOSS = PortLoss()


class ProbeLossTracker:
    """Lost probes of one pair, by source port; a loss is noticed when a later probe arrives.

    A host probes the ports it keeps in a fixed round. So a port is missing a probe when ports behind it in the round
    are heard of again before it is:

        >>> tracker = ProbeLossTracker()
        >>> confirmed = CONFIRMATIONS + 1
        >>> for number, port in enumerate((1, 2)):
        ...     _ = tracker.record_round(port, confirmed, number)
        >>> tracker.record_round(2, confirmed + 1, number=3)
        [1]
    """

    def __init__(self) -> None:
        self._by_port: dict[int, PortLoss] = {}
        self._round: OrderedDict[int, int] = OrderedDict()
        """Ports in the order of the round, with the number of the last probe that arrived from each."""
        self._newest = -1
        """The highest number of all probes, including those of ports that are kept no longer."""

    @property
    def ports(self) -> Set[int]:
        """Ports that have lost probes."""
        return self._by_port.keys()

    def of(self, port: int) -> PortLoss:
        """Return the losses of a port."""
        return self._by_port.get(port, _NO_LOSS)

    def record_round(self, port: int, port_sequence: int, number: int) -> Sequence[int]:
        """Move a port to the end of the round; return the ports before it, whose probes are missing.

        The first probes of a new port are sent at once, out of the round, and show nothing about other ports.

        Args:
            port: The source port of the probe that arrived.
            port_sequence: Counts the probes of the port.
            number: Counts the probes of the pair. It orders rounds by sending, however probes overtook each other.
        """
        order, missing = self._round, list[int]()
        if number < self._newest:
            self._record_overtaken(port, number)
            return missing
        self._newest = number
        if port_sequence > CONFIRMATIONS and port in order:
            while (first := next(iter(order))) != port:
                order.move_to_end(first)
                missing.append(first)
        order[port] = number
        order.move_to_end(port)
        return missing

    def _record_overtaken(self, port: int, number: int) -> None:
        """Put a port in its place before the ports whose later probes overtook this one."""
        order, overtakers = self._round, list[int]()
        if order.get(port, -1) >= number:
            return
        order[port] = number
        for other in reversed(order):
            if order[other] < number:
                break
            overtakers.append(other)
        order.move_to_end(port)
        for other in reversed(overtakers):
            if other != port:
                order.move_to_end(other)

    def record_missing(self, port: int, now_s: float) -> None:
        """Record that a probe of a port is missing."""
        loss = self.of(port)
        self._by_port[port] = PortLoss(loss.probes + 1, now_s, loss.last_s)

    def record_arrival(self, port: int) -> None:
        """Record that a probe of a port arrived by the expected path."""
        self._by_port.pop(port, None)

    def forget(self, port: int) -> None:
        """Take a port out of the round."""
        self._by_port.pop(port, None)
        self._round.pop(port, None)

    def reset(self) -> None:
        """Clear all losses recorded so far."""
        self._by_port.clear()
