"""Detection of the steady state of a component, whose iterations repeat exactly or in the mean."""

from dataclasses import dataclass

import numpy as np

from policies.model.picoseconds import PS_PER_S
from policies.rates.network import FloatArray, IntArray


@dataclass(frozen=True, slots=True)
class SkipOptions:
    """Which iterations between two events are skipped.

    With ``cycles``, these are the repetitions of an exact cycle. With a ``tolerance``, they are all until the next
    event, once the running mean of every job's iteration time has changed by less than this share over two windows in a
    row; a window has ``window_iterations`` of the job whose iterations are longest.
    """

    cycles: bool = True
    tolerance: float | None = 0.001
    window_iterations: int = 64

    def __post_init__(self) -> None:
        if self.tolerance is not None and not 0 < self.tolerance < 1:
            raise ValueError(f"tolerance must lie between 0 and 1, not {self.tolerance}")
        if self.window_iterations < 1:
            raise ValueError(f"window_iterations must be at least 1, not {self.window_iterations}")


ACCURATE = SkipOptions(cycles=False, tolerance=None)
"""Computes every iteration of every job that sends."""


@dataclass(frozen=True, slots=True, eq=False)
class Cycle:
    """An exact cycle: its period and the iterations that every job completes in it."""

    period_ps: int
    iterations: IntArray


class CycleSearch:
    """Finds the first state that occurs again."""

    def __init__(self) -> None:
        self._seen: dict[bytes, tuple[int, IntArray]] = {}

    def find(self, state: bytes, now_ps: int, iterations: IntArray) -> Cycle | None:
        """Return the cycle that a state closes, or None where the state is new."""
        known = self._seen.setdefault(state, (now_ps, iterations))
        return Cycle(now_ps - known[0], iterations - known[1]) if known[0] < now_ps else None


class RunningMeans:
    """Tracks the mean iteration times of all jobs since the end of the first window."""

    def __init__(self, options: SkipOptions) -> None:
        self._options = options
        self._since: tuple[IntArray, IntArray] | None = None
        self._last: FloatArray | None = None
        self._num_steady = 0

    def end_window(self, iterations: IntArray, begun_ps: IntArray) -> FloatArray | None:
        """End a window; return the mean iteration times in seconds once they are steady, else None."""
        if self._since is None:
            self._since = iterations, begun_ps
            return None
        completed = iterations - self._since[0]
        if not completed.all():
            return None
        means_s = (begun_ps - self._since[1]) / completed / PS_PER_S
        if self._last is not None and self._options.tolerance is not None:
            is_steady = np.abs(means_s / self._last - 1) < self._options.tolerance
            self._num_steady = self._num_steady + 1 if is_steady.all() else 0
        self._last = means_s
        return means_s if self._num_steady >= 2 else None
