"""Rates that were set before: what iterates comes back to the same flows again and again.

An event reaches the same flows, and gives them the same rates, whenever the same flows are under way and the same have
started or ended. Sets of flows are told apart by the exclusive or of numbers drawn for their members: of n sets
remembered, two are confused with a probability of n^2 / 2^65.
"""

from typing import NamedTuple, Self

import numpy as np
import numpy.typing as npt

from policies.machine_code import compiled
from policies.rates.network import FloatArray, IntArray

_NUM_SLOTS = 2048
_MOST_RATES = 1 << 18

EMPTY = -1


class KnownRates(NamedTuple):
    """A hash table; ``sizes`` are its numbers of entries and of rates.

    The entry of a slot, if its ``begins`` is not EMPTY, is for the flows under way with the first of its ``keys`` while
    those with the second have just started or ended: ``flows`` and ``rates_bps`` from there on, ``lengths`` of them.
    ``drawn`` has a number for every flow.
    """

    drawn: IntArray
    keys: npt.NDArray[np.int64]
    begins: IntArray
    lengths: IntArray
    flows: IntArray
    rates_bps: FloatArray
    sizes: IntArray

    @classmethod
    def of(cls, num_flows: int) -> Self:
        """Nothing is known."""
        bounds = np.iinfo(np.int64)
        num_rates = max(num_flows, min(_MOST_RATES, num_flows * _NUM_SLOTS // 4))
        return cls(
            drawn=np.random.default_rng(0).integers(bounds.min, bounds.max, num_flows),
            keys=np.empty((_NUM_SLOTS, 2), dtype=np.int64),
            begins=np.full(_NUM_SLOTS, EMPTY),
            lengths=np.empty(_NUM_SLOTS, dtype=np.int64),
            flows=np.empty(num_rates, dtype=np.int64),
            rates_bps=np.empty(num_rates),
            sizes=np.zeros(2, dtype=np.int64),
        )

    def forget(self) -> None:
        """Nothing is known any more."""
        self.begins[:] = EMPTY
        self.sizes[:] = 0


@compiled
def key_of(drawn: IntArray, flows: IntArray) -> int:
    """The key of a set of flows."""
    key = 0
    for flow in flows:
        key ^= drawn[flow]
    return key


@compiled
def find_slot(keys: npt.NDArray[np.int64], begins: IntArray, key: int, touched_key: int) -> int:
    """The slot of an entry, or an empty one where there is none."""
    last = len(begins) - 1
    slot = (key ^ (touched_key >> 7)) & last
    while begins[slot] != EMPTY and (keys[slot, 0] != key or keys[slot, 1] != touched_key):
        slot = (slot + 1) & last
    return slot


@compiled
def remember(known: KnownRates, key: int, touched_key: int, flows: IntArray, rates_bps: FloatArray) -> int:
    """Make an entry, for which others may have to go; returns its slot."""
    if 2 * known.sizes[0] > len(known.begins) or known.sizes[1] + len(flows) > len(known.flows):
        known.begins[:] = EMPTY
        known.sizes[:] = 0
    slot, begin = find_slot(known.keys, known.begins, key, touched_key), known.sizes[1]
    known.keys[slot, 0], known.keys[slot, 1] = key, touched_key
    known.begins[slot], known.lengths[slot] = begin, len(flows)
    known.flows[begin : begin + len(flows)] = flows
    known.rates_bps[begin : begin + len(flows)] = rates_bps
    known.sizes[0] += 1
    known.sizes[1] += len(flows)
    return slot
