"""Packets between the controller and the ports of switches that speak two protocols."""

from collections.abc import Collection, Iterable, Mapping

from controller.southbound.southbound import PacketArrival, PacketPorts, WakeUp


class MixedPackets:
    """The ports of the switches of both protocols; see PacketPorts. Each switch is of one of them."""

    def __init__(self, one: PacketPorts, other: PacketPorts) -> None:
        self._both = (one, other)

    @property
    def connected(self) -> Collection[str]:
        """See PacketPorts."""
        return frozenset(name for each in self._both for name in each.connected)

    @property
    def dropped(self) -> Mapping[str, int]:
        """See PacketPorts."""
        return {name: count for each in self._both for name, count in each.dropped.items()}

    def listen(self, wake: WakeUp) -> None:
        """See PacketPorts."""
        for each in self._both:
            each.listen(wake)

    def take(self, most: int) -> list[PacketArrival]:
        """See PacketPorts; those of each protocol are in order. Neither takes the other's turn when it is flooded."""
        one, other = self._both
        first = one.take(most - most // 2)
        second = other.take(most - len(first))
        return first + second + one.take(most - len(first) - len(second))

    def send(self, name: str, packets: Iterable[tuple[int, bytes]]) -> None:
        """See PacketPorts."""
        for each in self._both:
            if name in each.connected:
                each.send(name, packets)
