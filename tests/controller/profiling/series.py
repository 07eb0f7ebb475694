"""Counters of made-up jobs, whose truth is known."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from policies.arrays import FloatArray

RATE_BYTES_PER_S = 1e9

Stretch = tuple[float, float]
"""Seconds without traffic, then seconds with it."""


@dataclass(frozen=True)
class Series:
    """A counter as it was read, and what the job behind it did."""

    times_s: FloatArray
    counted_bytes: FloatArray
    period_s: float


def series(
    iteration: Sequence[Stretch],
    seed: int,
    *,
    iterations: int = 31,
    spread: float = 0.2,
    sample_s: float = 0.02,
    pause: tuple[int, float] | None = None,
) -> Series:
    """Iterations whose lengths are uniform about that of ``iteration``, by what passes without traffic.

    ``pause`` is an iteration and seconds that it takes besides, of which the truth knows nothing. Reading takes a
    while, so that samples are not quite even.
    """
    random = np.random.default_rng(seed)
    idle_s, busy_s = (sum(stretch[part] for stretch in iteration) for part in (0, 1))
    times_s, busy_until_s = [0.0, random.uniform(0.0, idle_s + busy_s)], [0.0, 0.0]
    lengths_s = []
    for number in range(iterations):
        length_s = random.uniform(1 - spread, 1 + spread) * (idle_s + busy_s)
        longer = max(0.0, (length_s - busy_s) / idle_s)
        begun_s = times_s[-1]
        for without_s, with_s in iteration:
            times_s += [times_s[-1] + without_s * longer, times_s[-1] + without_s * longer + with_s]
            busy_until_s += [busy_until_s[-1], busy_until_s[-1] + with_s]
        lengths_s.append(times_s[-1] - begun_s)
        if pause is not None and number == pause[0]:
            times_s.append(times_s[-1] + pause[1])
            busy_until_s.append(busy_until_s[-1])
    read_s = np.arange(0.0, times_s[-1], sample_s)
    read_s += random.uniform(0.0, sample_s / 10, len(read_s))
    return Series(read_s, np.interp(read_s, times_s, busy_until_s) * RATE_BYTES_PER_S, float(np.mean(lengths_s)))
