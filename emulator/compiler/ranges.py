"""Ranges of the values that BMv2 JSON expressions can have, which decide how many machine words they need.

JSON integers have no width. An operation whose low result bits depend only on low operand bits (a sum) needs few words.
An operation that depends on the whole value (a comparison, a right shift) needs as many words as the value can fill.
"""

from dataclasses import dataclass

from emulator.compiler.layout import WORD_BITS, words_of

_WIDEST_SHIFT_BITS = 1 << 13
"""Assumed maximum of a shift: its result is already wider than any supported value."""


@dataclass(frozen=True, slots=True)
class Range:
    """Values from ``low`` to ``high``; both ends may be unreachable."""

    low: int
    high: int

    @property
    def signed(self) -> bool:
        """Whether a value can be negative, so that it needs a sign bit."""
        return self.low < 0

    @property
    def num_words(self) -> int:
        """Words in which every value is exact, in two's complement if it can be negative."""
        if not self.signed:
            return words_of(self.high.bit_length())
        return words_of(self._bits + 1)

    @property
    def _bits(self) -> int:
        return max(self.high.bit_length(), (~self.low).bit_length() if self.signed else 0)

    def joined(self, other: "Range") -> "Range":
        """Return the smallest range with all values of both."""
        return Range(min(self.low, other.low), max(self.high, other.high))

    def clamped(self, limits: "Range") -> "Range":
        """Return the range of values after each is moved to the nearest one within limits."""
        return Range(*(min(max(end, limits.low), limits.high) for end in (self.low, self.high)))

    def within(self, limits: "Range") -> bool:
        """Return whether all values are within limits."""
        return limits.low <= self.low and self.high <= limits.high


BOOLEAN = Range(0, 1)
WORD = Range(0, (1 << WORD_BITS) - 1)


def unsigned_range(bits: int) -> Range:
    """Return the values of bit<W>."""
    return Range(0, (1 << bits) - 1)


def signed_range(bits: int) -> Range:
    """Return the values of int<W>."""
    return Range(-(1 << bits - 1), (1 << bits - 1) - 1)


def range_after(operation: str, left: Range, right: Range) -> Range:
    """Return the possible results of an arithmetic operation."""
    match operation:
        case "+":
            return Range(left.low + right.low, left.high + right.high)
        case "-":
            return Range(left.low - right.high, left.high - right.low)
        case "*":
            ends = [a * b for a in (left.low, left.high) for b in (right.low, right.high)]
            return Range(min(ends), max(ends))
        case "&":
            limits = [operand.high for operand in (left, right) if not operand.signed]
            return Range(0, min(limits)) if limits else _same_bits(left, right)
        case "|" | "^":
            return _same_bits(left, right)
        case "<<" | ">>":
            ends = [_shifted(operation, value, shift) for value in (left.low, left.high) for shift in _shifts(right)]
            return Range(min(ends), max(ends))
        case "/":
            return Range(0, left.high)
        case "%":
            return Range(0, min(left.high, max(right.high - 1, 0)))
    raise ValueError(f"{operation!r} is not an arithmetic operation")


def _shifts(bits: Range) -> tuple[int, int]:
    low, high = (min(max(end, 0), _WIDEST_SHIFT_BITS) for end in (bits.low, bits.high))
    return low, high


def _shifted(operation: str, value: int, bits: int) -> int:
    return value << bits if operation == "<<" else value >> bits


def _same_bits(left: Range, right: Range) -> Range:
    joined = left.joined(right)
    bits = max(joined.high.bit_length(), (~joined.low).bit_length() if joined.signed else 0)
    return Range(-(1 << bits) if joined.signed else 0, (1 << bits) - 1)
