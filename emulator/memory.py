"""Memory of a fabric's switches: one flat array of 64-bit words that compiled programs read and count in.

Every switch has a block of descriptors, one for each table, counter and register array, at an offset that compiled code
knows. Slots, members, groups and counter cells lie wherever the arena placed them; descriptors and slots point to them.
Growing the array moves nothing.
"""

import numpy as np
from numpy.typing import NDArray

from emulator.jit import inlined

# Descriptor of a table. (The descriptor of a counter or register array is one word, the offset of its cells.)
SLOTS = 0  # offset of its slots
SLOT_MASK = 1  # number of slots, a power of two, minus one
SLOT_COUNT = 1  # of a scanned table: number of entries
NUM_PREFIXES = 2  # distinct prefix masks of an LPM table
PREFIXES = 3  # offset of those masks, longest first
DEFAULT = 4  # offset of the default action: its number, then its arguments
NUM_ENTRIES = 5  # empty tables need no search
DESCRIPTOR_WORDS = 6

# The first word of a slot is its state. Then come the key's words, counters, and the action.
EMPTY, USED, DELETED = 0, 1, 2

# A counter cell is two words.
PACKETS, BYTES, COUNTER_WORDS = 0, 1, 2

# A meter (see emulator.meters).
METER_WORDS = 9

# The action of an indirect table is one of these, followed by the offset of a member (its action's number, then the
# arguments) or of a group (the number of members, then their offsets).
TO_MEMBER, TO_GROUP = 1, 2
INDIRECT_WORDS = 2

# 16-bit numbers are looked up in a page of 256 pointers to pages of 256 pointers; 0 means none.
PAGE_WORDS = 256

# A multicast group or clone session: maximum length of a copy (0: no limit), its level plus one (0: the packet's own
# level), the number of replicas, then port and instance of each.
REPLICAS_LONGEST, REPLICAS_LEVEL, REPLICAS_COUNT, REPLICAS = 0, 1, 2, 3
REPLICA_WORDS = 2

_HASH_MULTIPLIER = 0x9E37_79B9_7F4A_7C15
_WORD_MASK = (1 << 64) - 1


class Arena:
    """Allocates zeroed blocks from one growing array."""

    def __init__(self, initial_words: int = 1 << 16) -> None:
        self.words: NDArray[np.uint64] = np.zeros(initial_words, dtype=np.uint64)
        self._used = 1  # offset 0 means none
        self._free: dict[int, list[int]] = {}

    def allocate(self, num_words: int) -> int:
        """Return the offset of a new block of zeroed words."""
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
        """Free a block."""
        self._free.setdefault(num_words, []).append(offset)


@inlined
def mix(hashed: np.uint64, word: np.uint64) -> np.uint64:
    """Return the key hash after one more word, as compiled programs compute it."""
    hashed = (hashed ^ word) * np.uint64(0x9E37_79B9_7F4A_7C15)
    return hashed ^ (hashed >> np.uint64(29))


@inlined
def numbered_place(memory: NDArray[np.uint64], pages: np.uint64, number: np.uint64) -> int:
    """Return the offset stored for a number in the pages; 0 if there is none."""
    page = memory[pages + (number >> np.uint64(8))]
    return int(np.int64(memory[page + (number & np.uint64(0xFF))])) if page else 0


def key_hash(words: tuple[int, ...]) -> int:
    """Return the hash of all words of a key, for the control plane."""
    hashed = 0
    for word in words:
        hashed = (hashed ^ word) * _HASH_MULTIPLIER & _WORD_MASK
        hashed ^= hashed >> 29
    return hashed
