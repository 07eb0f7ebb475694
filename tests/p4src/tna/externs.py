"""What the architecture's externs do: objects that translated programs call."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cache

from tests.p4src.tna.layouts import Number

Values = dict[str, int]

GREEN, RED = 0, 3


def signed(value: int, bits: int) -> int:
    """What the low bits of a value mean as a signed number."""
    kept = value & (1 << bits) - 1
    return kept - (1 << bits) if kept >> bits - 1 else kept


@dataclass(slots=True)
class Counter:
    """Counts packets and bytes, [packets, bytes] for each index that has been counted."""

    size: int
    cells: dict[int, list[int]] = field(default_factory=dict)

    def count(self, index: int, num_bytes: int) -> None:
        """One packet more; an index beyond the size counts nothing."""
        if index < self.size:
            cell = self.cells.setdefault(index, [0, 0])
            cell[0] += 1
            cell[1] += num_bytes


@dataclass(slots=True)
class DirectCounter:
    """Counts in the cell of the entry that its table has found last."""

    cell: list[int] = field(default_factory=lambda: [0, 0])

    def count(self, num_bytes: int) -> None:
        """One packet more of the entry."""
        self.cell[0] += 1
        self.cell[1] += num_bytes


@dataclass(slots=True)
class Meter:
    """Lets ``burst_packets`` of each index pass, by index, and colours all others red: time does not refill it."""

    burst_packets: dict[int, int] = field(default_factory=dict)

    def execute(self, index: int, _: Values) -> int:
        """The colour of a packet; without a burst all are green."""
        left = self.burst_packets.get(index)
        if left is None:
            return GREEN
        self.burst_packets[index] = max(left - 1, 0)
        return GREEN if left else RED


@dataclass(slots=True)
class Register:
    """Cells of a number each, or of a pair of numbers."""

    cells: list[int] | list[tuple[int, ...]]


class Checksum:
    """The Internet checksum; a parser's sum is kept with the packet under the object's name."""

    def __init__(self, name: str) -> None:
        self._key = f"{name}.$sum"

    def add(self, values: Values, data: int, bits: int) -> None:
        """Add a list's 16-bit words."""
        values[self._key] = _folded(values.get(self._key, 0) + word_sum(data, bits))

    def subtract(self, values: Values, data: int, bits: int) -> None:
        """Add the complements of its words."""
        values[self._key] = _folded(values.get(self._key, 0) + (word_sum(data, bits) ^ 0xFFFF))

    def is_wrong(self, values: Values) -> bool:
        """What the chip writes for ``verify``: whether the sum is not all ones."""
        return values.get(self._key, 0) != 0xFFFF

    def get(self, values: Values) -> int:
        """The sum, which a deparser adds to those of new fields."""
        return values.get(self._key, 0)

    @staticmethod
    def update(data: int, bits: int, zeros_as_ones: bool = False) -> int:
        """The checksum over a list."""
        checksum = word_sum(data, bits) ^ 0xFFFF
        return 0xFFFF if zeros_as_ones and checksum == 0 else checksum


def word_sum(data: int, bits: int) -> int:
    """One's complement sum of the 16-bit words of so many bits, the last filled up with zeros."""
    return _folded(data << -bits % 16)


def _folded(total: int) -> int:
    """A number modulo 0xFFFF is the sum of its 16-bit words; 0 is only the sum of zeros."""
    return total % 0xFFFF or (0xFFFF if total else 0)


@dataclass(frozen=True, slots=True)
class Crc:
    """A CRC of whole bytes: its polynomial without the highest bit, what it begins with and what ends it."""

    width: int
    polynomial: int
    is_reflected: bool
    initial: int
    final_xor: int

    def of(self, octets: bytes) -> int:
        """The remainder of bytes."""
        table, state, mask = _table(self), self.initial, (1 << self.width) - 1
        if self.is_reflected:
            for octet in octets:
                state = state >> 8 ^ table[(state ^ octet) & 0xFF]
        else:
            for octet in octets:
                state = state << 8 & mask ^ table[state >> self.width - 8 ^ octet]
        return state ^ self.final_xor


CRC32 = Crc(32, 0x04C11DB7, True, 0xFFFFFFFF, 0xFFFFFFFF)
CRC16 = Crc(16, 0x8005, True, 0, 0)


@cache
def _table(crc: Crc) -> Sequence[int]:
    """The remainders of all bytes."""
    mask, high = (1 << crc.width) - 1, 1 << crc.width - 1
    mirrored = int(f"{crc.polynomial:0{crc.width}b}"[::-1], 2)
    found = []
    for octet in range(256):
        state = octet if crc.is_reflected else octet << crc.width - 8
        for _ in range(8):
            if crc.is_reflected:
                state = state >> 1 ^ (mirrored if state & 1 else 0)
            else:
                state = state << 1 & mask ^ (crc.polynomial if state & high else 0)
        found.append(state)
    return found


@dataclass(frozen=True, slots=True)
class Hash:
    """The low bits of a CRC over a list of fields, or of the list itself where there is no CRC."""

    crc: Crc | None
    result: Number

    def get(self, data: int, bits: int) -> int:
        """The hash of a list; raises ``NotImplementedError`` where it is no whole bytes."""
        if self.crc is None:
            return data & self.result.mask
        if bits % 8:
            raise NotImplementedError(f"a CRC over {bits} bits")
        return self.crc.of(data.to_bytes(bits // 8, "big")) & self.result.mask
