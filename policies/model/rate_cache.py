"""Cache of rates: iterating jobs return to the same sets of active flows again and again.

An event affects the same flows, with the same rates, whenever the same flows are active and the same flows have started
or ended. The key of a set is the sum of random numbers of its members, modulo 2^64; among n sets, two collide with a
probability of n^2 / 2^65. A flow that ends and starts again in one moment counts twice, and not for nothing.
"""

from typing import NamedTuple, Self

import numpy as np
import numpy.typing as npt

from policies.jit import compiled
from policies.rates.network import FloatArray, IntArray

_NUM_SLOTS = 2048
_MOST_RATES = 1 << 18

EMPTY = -1


class RateCache(NamedTuple):
    """A hash table; ``sizes`` are its numbers of entries and of rates.

    A slot is used if its ``begins`` is not EMPTY. Its ``keys`` are those of the active flows and of the flows that have
    just started or ended; its ``lengths`` entries of ``flows`` and ``rates_bps`` start at ``begins``. ``drawn`` has the
    random number of every flow.
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
        """Return an empty cache."""
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
        """Empty the cache."""
        self.begins[:] = EMPTY
        self.sizes[:] = 0


@compiled
def key_of(drawn: IntArray, flows: IntArray) -> int:
    """Return the key of a set of flows."""
    key = 0
    for flow in flows:
        key += drawn[flow]
    return key


@compiled
def find_slot(keys: npt.NDArray[np.int64], begins: IntArray, key: int, touched_key: int) -> int:
    """Return the slot of an entry, or an empty one if there is none."""
    last = len(begins) - 1
    slot = (key ^ (touched_key >> 7)) & last
    while begins[slot] != EMPTY and (keys[slot, 0] != key or keys[slot, 1] != touched_key):
        slot = (slot + 1) & last
    return slot


@compiled
def remember(cache: RateCache, key: int, touched_key: int, flows: IntArray, rates_bps: FloatArray) -> int:
    """Add an entry, for which others may be evicted; return its slot."""
    if 2 * cache.sizes[0] > len(cache.begins) or cache.sizes[1] + len(flows) > len(cache.flows):
        cache.begins[:] = EMPTY
        cache.sizes[:] = 0
    slot, begin = find_slot(cache.keys, cache.begins, key, touched_key), cache.sizes[1]
    cache.keys[slot, 0], cache.keys[slot, 1] = key, touched_key
    cache.begins[slot], cache.lengths[slot] = begin, len(flows)
    cache.flows[begin : begin + len(flows)] = flows
    cache.rates_bps[begin : begin + len(flows)] = rates_bps
    cache.sizes[0] += 1
    cache.sizes[1] += len(flows)
    return slot
