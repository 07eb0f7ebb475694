"""Random choices, in an order that a seed gives."""

from random import Random
from typing import Any

ODD_BYTES = (0x00, 0x00, 0x01, 0x01, 0x02, 0x7F, 0x80, 0xFF)


class Dice:
    """What a drawing asks for its choices."""

    def __init__(self, random: Random) -> None:
        self.random = random

    def some(self, items: Any) -> Any:
        """One of the items."""
        return self.random.choice(list(items))

    def often(self, share: float) -> bool:
        """True in such a share of cases."""
        return self.random.random() < share

    def value(self, bits: int) -> int:
        """A number of so many bits, often an extreme one."""
        full = (1 << bits) - 1
        return int(self.some([0, 1 & full, full, self.random.getrandbits(bits), self._odd(bits)]))

    def _odd(self, bits: int) -> int:
        octets = bytes(self.some(ODD_BYTES) for _ in range((bits + 7) // 8))
        return int.from_bytes(octets, "big") & (1 << bits) - 1
