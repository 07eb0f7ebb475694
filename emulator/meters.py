"""Two-rate three-colour meters (RFC 2698, colour-blind), as in BMv2, in the fabric's time.

A meter has two buckets. They fill every microsecond with whole tokens, packets or bytes, counted from the start of the
fabric's clock.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from emulator.compiler.tables import Meter
from emulator.entries import InvalidRequestError
from emulator.jit import inlined
from emulator.memory import METER_WORDS, Arena

GREEN, YELLOW, RED = 0, 1, 2

MAX_TOKENS = (1 << 32) - 1
"""Largest burst, and highest rate in tokens per microsecond."""

_MAX_RATE = 1_000_000 * MAX_TOKENS

# A meter: whether it has rates (otherwise all packets are green), then the peak bucket, then the committed one.
_CONFIGURED, _BUCKETS = 0, 1
_RATE, _BURST, _TOKENS, _FILLED, _BUCKET_WORDS = 0, 1, 2, 3, 4
_US_PER_S = 1e6


@inlined
def execute_meter(memory: NDArray[np.uint64], meter: int, amount: np.uint64, now_us: np.uint64) -> np.uint64:
    """Return the colour of ``amount`` tokens, and take them from the buckets that hold them."""
    if memory[meter + _CONFIGURED] == np.uint64(0):
        return np.uint64(GREEN)
    for number in range(2):
        bucket = meter + _BUCKETS + number * _BUCKET_WORDS
        filled = np.uint64(np.float64(now_us) * (np.float64(memory[bucket + _RATE]) / _US_PER_S))
        tokens = min(memory[bucket + _TOKENS] + filled - memory[bucket + _FILLED], memory[bucket + _BURST])
        memory[bucket + _FILLED] = filled
        memory[bucket + _TOKENS] = tokens
        if tokens < amount:
            return np.uint64(RED - number)
        memory[bucket + _TOKENS] = tokens - amount
    return np.uint64(GREEN)


@dataclass(frozen=True, slots=True)
class MeterRates:
    """Rates per second and bursts, in packets or bytes as the meter counts.

    Traffic above the peak rate is red, traffic above the committed rate yellow.
    """

    committed_rate: int
    committed_burst: int
    peak_rate: int
    peak_burst: int

    def __post_init__(self) -> None:
        for rate in (self.committed_rate, self.peak_rate):
            if not 0 <= rate <= _MAX_RATE:
                raise InvalidRequestError(f"the rate of a meter must be within 0 to {_MAX_RATE}, not {rate}")
        for burst in (self.committed_burst, self.peak_burst):
            if not 0 <= burst <= MAX_TOKENS:
                raise InvalidRequestError(f"the burst of a meter must be within 0 to {MAX_TOKENS}, not {burst}")
        if self.peak_rate < self.committed_rate:
            raise InvalidRequestError(
                f"the peak rate of a meter, {self.peak_rate}, is below its committed rate, {self.committed_rate}"
            )


def write_rates(arena: Arena, place: int, rates: MeterRates | None) -> None:
    """Set a meter's rates and fill its buckets; None removes the rates."""
    words = [0] * METER_WORDS
    if rates:
        peak = (rates.peak_rate, rates.peak_burst, rates.peak_burst, 0)
        committed = (rates.committed_rate, rates.committed_burst, rates.committed_burst, 0)
        words = [1, *peak, *committed]
    arena.words[place : place + METER_WORDS] = words


def read_rates(arena: Arena, place: int) -> MeterRates | None:
    """Return the rates of a meter, None if it has none."""
    words = [int(word) for word in arena.words[place : place + METER_WORDS]]
    if not words[_CONFIGURED]:
        return None
    peak, committed = words[_BUCKETS:], words[_BUCKETS + _BUCKET_WORDS :]
    return MeterRates(committed[_RATE], committed[_BURST], peak[_RATE], peak[_BURST])


class MeterMemory:
    """One array of meters of a switch; compiled code finds it through the word ``pointer``."""

    def __init__(self, arena: Arena, meter: Meter, pointer: int) -> None:
        self._arena = arena
        self._meter = meter
        self._place = arena.allocate(METER_WORDS * meter.size)
        arena.words[pointer] = self._place

    def set(self, index: int, rates: MeterRates | None) -> None:
        """Set the rates of a meter and fill its buckets; without rates all packets are green.

        Raises InvalidRequestError for an index out of range.
        """
        write_rates(self._arena, self._place_of(index), rates)

    def get(self, index: int) -> MeterRates | None:
        """Return the rates of a meter. Raises InvalidRequestError for an index out of range."""
        return read_rates(self._arena, self._place_of(index))

    def free(self) -> None:
        """Return all words to the arena."""
        self._arena.free(self._place, METER_WORDS * self._meter.size)

    def _place_of(self, index: int) -> int:
        if not 0 <= index < self._meter.size:
            raise InvalidRequestError(f"meter {self._meter.name!r} has {self._meter.size} cells, no index {index}")
        return self._place + METER_WORDS * index
