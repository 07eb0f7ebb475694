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

    A host probes every port it keeps once in a round. So a port is missing a probe when another port is heard of in two
    rounds and it is not heard of between them:

        >>> tracker = ProbeLossTracker()
        >>> confirmed = CONFIRMATIONS + 1
        >>> for number, port in enumerate((1, 2)):
        ...     _ = tracker.record_round(port, confirmed, number)
        >>> tracker.record_round(2, confirmed + 1, number=3)
        [1]

    Hosts keep the order of a round for the most part. A port that changes its place may count as missing in that round,
    and in no later one.
    """

    def __init__(self) -> None:
        self._by_port: dict[int, PortLoss] = {}
        self._turns: OrderedDict[int, int] = OrderedDict()
        """By port, the number of the probe by which it was last heard of or noticed missing; the lowest number first.
        """
        self._heard: dict[int, int] = {}
        """By port, the number of the last probe that arrived from it in a round."""
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
        """Record that a probe arrived; return the ports whose probes are missing.

        The first probes of a new port are sent at once, out of the round, and show nothing about other ports.

        Args:
            port: The source port of the probe that arrived.
            port_sequence: Counts the probes of the port.
            number: Counts the probes of the pair. It orders rounds by sending, however probes overtook each other.
        """
        turns, missing = self._turns, list[int]()
        before, is_in_round = self._heard.get(port), port_sequence > CONFIRMATIONS
        if is_in_round and (before is None or before < number):
            self._heard[port] = number
        if number < self._newest:
            self._record_overtaken(port, number)
            return missing
        self._newest = number
        if is_in_round and before is not None:
            while turns[first := next(iter(turns))] < before:
                turns[first] = number - 1
                turns.move_to_end(first)
                missing.append(first)
        turns[port] = number
        turns.move_to_end(port)
        return missing

    def _record_overtaken(self, port: int, number: int) -> None:
        """Put a port in its place before the ports whose later probes overtook this one."""
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
        self._turns.pop(port, None)
        self._heard.pop(port, None)

    def reset(self) -> None:
        """Clear all losses recorded so far."""
        self._by_port.clear()
