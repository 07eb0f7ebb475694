"""What packets have beyond the bytes that the engine stores: Python keeps it while they pass the fabric.

No program sees these bytes. A packet that programs shorten, or lengthen, has them behind the rest of it, and copies of
it have them, too.
"""

from emulator.engine.state import NONE

ROOM_BYTES = 128
"""By so much a packet that is longer than what the engine stores may grow."""

MOST_BYTES = 256 << 20
"""What all packets together may have."""


class Tails:
    """The ends of packets by number, kept until no packet is left in the fabric."""

    def __init__(self) -> None:
        self._tails: dict[int, bytes] = {}
        self._num_bytes = 0
        self._next = 0

    def keep(self, tail: bytes, is_at_rest: bool) -> int:
        """Keep the end of a packet and return its number; where the fabric ``is_at_rest``, forget all others.

        Raises:
            ValueError: Too many long packets are in the fabric.
        """
        if is_at_rest:
            self._tails.clear()
            self._num_bytes = 0
        if self._num_bytes + len(tail) > MOST_BYTES:
            raise ValueError(f"the long packets in the fabric have more than {MOST_BYTES >> 20} MiB")
        number, self._next = self._next, self._next + 1
        self._tails[number] = tail
        self._num_bytes += len(tail)
        return number

    def of(self, number: int, length: int) -> bytes:
        """Return the first bytes of a packet's end, or none where it has none of its own."""
        return b"" if number == NONE else self._tails.get(number, b"")[:length]
