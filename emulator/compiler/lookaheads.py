"""Lookaheads of a parser: reads of bits that it has not yet extracted."""

from emulator.compiler.layout import WORD_BITS
from emulator.compiler.wire import bits_source


class Lookahead:
    """Compiles reads of bits ahead of ``at``; records how far a statement reads, so that this can be checked first."""

    def __init__(self) -> None:
        self.num_bytes = 0

    def __call__(self, bit_offset: int, bits: int) -> list[str]:
        """Return the words of so many bits from a bit on, counted from the first byte not yet extracted."""
        self.num_bytes = max(self.num_bytes, (bit_offset + bits + 7) // 8)
        sources = bits_source(bit_offset, bits)
        # A single byte is not yet a word. What uses a source may bind tighter than what is in it.
        return [f"({source})" if 8 < bits <= WORD_BITS else f"U({source})" for source in sources]


def lookahead_bytes(node: object) -> int:
    """Return how many bytes ahead the lookaheads in a piece of JSON read."""
    if isinstance(node, dict):
        if node.get("type") == "lookahead":
            return (sum(node["value"]) + 7) // 8
        return max((lookahead_bytes(value) for value in node.values()), default=0)
    if isinstance(node, list):
        return max((lookahead_bytes(value) for value in node), default=0)
    return 0
