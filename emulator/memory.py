"""The memory of a fabric's switches: one flat array of 64-bit words that compiled programs read and count in.

Every switch has a block of descriptors, one per table, counter and register array, at a place the compiled code knows;
slots, members, groups and counter cells lie wherever the arena put them, and descriptors and slots point there.
Growing moves nothing.
"""

import numpy as np
from numpy.typing import NDArray

from emulator.jit import inlined

# Descriptor of a table (that of a counter or register array has one word, the offset of its cells).
SLOTS = 0  # offset of its slots
SLOT_MASK = 1  # number of slots, a power of two, minus one
SLOT_COUNT = 1  # of a table that is scanned: number of entries
NUM_PREFIXES = 2  # distinct prefix masks of an LPM table
PREFIXES = 3  # offset of those masks, longest first
DEFAULT = 4  # offset of the default action: its number, then its arguments
NUM_ENTRIES = 5  # many tables are empty, and then need no search
DESCRIPTOR_WORDS = 6

# The first word of a slot says what is in it; the key's words follow, then counters, then the action.
EMPTY, USED, DELETED = 0, 1, 2

# A counter cell is two words.
PACKETS, BYTES, COUNTER_WORDS = 0, 1, 2

# A meter (see emulator.meters).
METER_WORDS = 9

# The action of an indirect table is one of these and the offset of a member (its action's number, then the arguments)
# or of a group (the number of members, then their offsets).
TO_MEMBER, TO_GROUP = 1, 2
INDIRECT_WORDS = 2

# What is numbered by 16 bits is found by way of a page of 256 pointers to pages of 256 pointers; 0 is nothing.
PAGE_WORDS = 256

# A multicast group or clone session: the longest that a copy may be (0: any), the level plus one that it gets (0: the
# packet's own), how many replicas there are, then the port and the instance of each.
REPLICAS_LONGEST, REPLICAS_LEVEL, REPLICAS_COUNT, REPLICAS = 0, 1, 2, 3
REPLICA_WORDS = 2

_HASH_MULTIPLIER = 0x9E37_79B9_7F4A_7C15
_WORD_MASK = (1 << 64) - 1


class Arena:
    """Hands out zeroed blocks of one growing array and takes them back."""

    def __init__(self, initial_words: int = 1 << 16) -> None:
        self.words: NDArray[np.uint64] = np.zeros(initial_words, dtype=np.uint64)
        self._used = 1  # offset 0 is nobody's
        self._free: dict[int, list[int]] = {}

    def allocate(self, num_words: int) -> int:
        """Offset of a block of zeroed words."""
        if self._free.get(num_words):
            offset = self._free[num_words].pop()
            self.words[offset : offset + num_words] = 0
            return offset
        offset, self._used = self._used, self._used + num_words
        if self._used > len(self.words):
            grown = np.zeros(max(self._used, 2 * len(self.words)), dtype=np.uint64)
            grown[: len(self.words)] = self.words
            self.words = grown
        return offset

    def free(self, offset: int, num_words: int) -> None:
        """Give a block back."""
        self._free.setdefault(num_words, []).append(offset)


@inlined
def mix(hashed: np.uint64, word: np.uint64) -> np.uint64:
    """One step of the hash over a key's words, as compiled programs compute it."""
    hashed = (hashed ^ word) * np.uint64(0x9E37_79B9_7F4A_7C15)
    return hashed ^ (hashed >> np.uint64(29))


@inlined
def numbered_place(memory: NDArray[np.uint64], pages: np.uint64, number: np.uint64) -> int:
    """Where what has this number stands, as the pages say; 0 where there is nothing."""
    page = memory[pages + (number >> np.uint64(8))]
    return int(np.int64(memory[page + (number & np.uint64(0xFF))])) if page else 0


def key_hash(words: tuple[int, ...]) -> int:
    """The same hash over all words of a key, for the control side."""
    hashed = 0
    for word in words:
        hashed = (hashed ^ word) * _HASH_MULTIPLIER & _WORD_MASK
        hashed ^= hashed >> 29
    return hashed
