"""Windowed maximum and minimum: what lasts in a series of noisy samples.

They are the filters of BBR's BtlBw and RTprop (Cardwell et al., "BBR: Congestion-Based Congestion Control", ACM
Queue 14(5), 2016), as values: ``update`` returns another one.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Self


@dataclass(frozen=True, slots=True)
class _Window:
    """Samples of the last ``length``, in the unit that the caller counts in: intervals, or seconds.

    Attributes:
        length: How far back a sample counts.
        samples: Those that are or may become the extreme, oldest first: (when it was taken, the value).
    """

    length: float
    samples: tuple[tuple[float, float], ...] = ()

    @property
    def value(self) -> float | None:
        """The extreme of the window; None before the first sample."""
        return self.samples[0][1] if self.samples else None

    def _keeping(self, at: float, value: float, kept: Sequence[tuple[float, float]]) -> Self:
        recent = tuple(sample for sample in kept if sample[0] > at - self.length)
        return type(self)(self.length, (*recent, (at, value)))


class WindowedMaximum(_Window):
    """The largest sample of the window."""

    __slots__ = ()

    def update(self, at: float, value: float) -> "WindowedMaximum":
        """Return the filter with one more sample; ``at`` never falls from call to call."""
        return self._keeping(at, value, [sample for sample in self.samples if sample[1] > value])


class WindowedMinimum(_Window):
    """The smallest sample of the window."""

    __slots__ = ()

    def update(self, at: float, value: float) -> "WindowedMinimum":
        """Return the filter with one more sample; ``at`` never falls from call to call."""
        return self._keeping(at, value, [sample for sample in self.samples if sample[1] < value])
