"""The frames that switches hand up wait here, in the order in which they came, within bounds."""

from collections import Counter, deque

from controller.southbound.southbound import PacketArrival, WakeUp

MAX_WAITING_PER_PORT = 32
"""Packets of a port that wait; further ones are dropped, so that a port that floods leaves room to others."""
MAX_WAITING_BYTES_PER_SWITCH = 4 * 1024 * 1024
"""Bytes of a switch that wait, each packet and what belongs to it: a switch may have thousands of ports."""
_PACKET_BYTES = 200
"""What a packet takes beside its octets, about."""


class PacketQueue:
    """The frames that wait for the controller.

    Attributes:
        dropped: How many packets found no room, by switch.
    """

    def __init__(self) -> None:
        self.dropped: Counter[str] = Counter()
        self._waiting: deque[PacketArrival] = deque()
        self._num_waiting: Counter[tuple[str, int]] = Counter()
        self._bytes_waiting: Counter[str] = Counter()
        self._wake: WakeUp | None = None

    def listen(self, wake: WakeUp) -> None:
        """Keep packets from now on, and call ``wake`` when the first one waits. Before, all are dropped uncounted."""
        self._wake = wake

    def keep(self, switch: str, port: object, octets: bytes) -> None:
        """Keep a packet, or drop it; ``port`` is the number of the port that it came in by, if that is known."""
        if self._wake is None:
            return
        num_bytes = self._bytes_waiting[switch] + len(octets) + _PACKET_BYTES
        if (
            not isinstance(port, int)
            or self._num_waiting[switch, port] >= MAX_WAITING_PER_PORT
            or num_bytes > MAX_WAITING_BYTES_PER_SWITCH
        ):
            self.dropped[switch] += 1
            return
        self._num_waiting[switch, port] += 1
        self._bytes_waiting[switch] = num_bytes
        self._waiting.append(PacketArrival(switch, port, octets))
        if len(self._waiting) == 1:
            self._wake()

    def take(self, most: int) -> list[PacketArrival]:
        """Take the packets that wait, at most so many."""
        taken = [self._waiting.popleft() for _ in range(min(most, len(self._waiting)))]
        for arrival in taken:
            self._num_waiting[arrival.switch, arrival.port] -= 1
            self._bytes_waiting[arrival.switch] -= len(arrival.octets) + _PACKET_BYTES
        if not self._waiting:
            self._num_waiting.clear()
            self._bytes_waiting.clear()
        return taken
