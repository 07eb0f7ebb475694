"""CASSINI's unified circle of one link: how far to turn jobs against each other so that their demands overlap least.

Rajasekaran, Ghobadi and Akella, *CASSINI: Network-Aware Job Scheduling in Machine Learning Clusters*, NSDI 2024. An
iteration is rolled into a circle whose perimeter is its time. The unified circle of a link has the least common
multiple of the perimeters, and carries every job as often as it fits. Turned by their shifts, the jobs demand more than
the link has at some angles. The score is 1 less the mean of that excess over the link's rate: 1 where they fit
perfectly, below 0 where they demand more than twice the rate.

Angles are 5 degrees of the shortest iteration, as in the paper, and iteration times are rounded to whole angles. A
circle of more than ``MAX_CIRCLE`` angles is cut off there: jobs whose periods have no short common multiple drift past
each other whatever their shifts, and are judged by the time after the start.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from math import lcm

import numpy as np

from policies.arrays import FloatArray

ANGLES = 72
MAX_CIRCLE = 20 * ANGLES
_MAX_SWEEPS = 10
_ROUNDING = 1e-9


@dataclass(frozen=True, slots=True)
class Use:
    """A job's use of a link: every ``period_s`` it demands ``share`` of the rate for ``busy_s``, from ``start_s`` on.

    ``start_s`` may be any time; whole periods make no difference.
    """

    period_s: float
    start_s: float
    busy_s: float
    share: float


class UnifiedCircle:
    """The circle of a link. The jobs of one part keep their positions to each other and turn together."""

    def __init__(self, parts: Sequence[Sequence[Use]]) -> None:
        periods_s = [use.period_s for part in parts for use in part]
        self.step_s = max(min(periods_s) / ANGLES, max(periods_s) / MAX_CIRCLE)
        profiles = [[self._profile(use) for use in part] for part in parts]
        periods = [[len(profile) for profile in part] for part in profiles]
        self.size = min(lcm(*(period for part in periods for period in part)), MAX_CIRCLE)
        turns = [min(lcm(*part), MAX_CIRCLE) for part in periods]
        self._turned = [self._all_turns(part, turns_of) for part, turns_of in zip(profiles, turns, strict=True)]

    def best_turns(self) -> list[int]:
        """Return the number of angles by which to turn every part; the first part stays.

        Parts are placed one after another, each where it adds least excess, at the least turn. Then each is moved again
        while that helps. With two parts the result is optimal, with more a local optimum.
        """
        turns = [0] * len(self._turned)
        total = self._turned[0][0].copy()
        for part in range(1, len(turns)):
            turns[part] = self._least_excess(part, total)
            total += self._turned[part][turns[part]]
        for _ in range(_MAX_SWEEPS if len(turns) > 2 else 0):
            before = list(turns)
            for part in range(1, len(turns)):
                total -= self._turned[part][turns[part]]
                turns[part] = self._least_excess(part, total)
                total += self._turned[part][turns[part]]
            if turns == before:
                break
        return turns

    def score(self, turns: Sequence[int]) -> float:
        """Return the compatibility of the parts when turned so."""
        total = sum(self._turned[part][turn] for part, turn in enumerate(turns))
        return 1.0 - float(np.maximum(total - 1.0, 0.0).mean())

    def _least_excess(self, part: int, others: FloatArray) -> int:
        excess = np.maximum(self._turned[part] + (others - 1.0), 0.0).sum(axis=1)
        return int((excess <= excess.min() + _ROUNDING * self.size).argmax())

    def _all_turns(self, profiles: Sequence[FloatArray], turns: int) -> FloatArray:
        """Return a part's demand at every angle (column) for every turn (row), as a view of one line of angles."""
        angles = np.arange(1 - turns, self.size)
        line = sum((profile[angles % len(profile)] for profile in profiles), np.zeros(len(angles)))
        return np.lib.stride_tricks.sliding_window_view(line, self.size)[::-1]

    def _profile(self, use: Use) -> FloatArray:
        """Return the mean share that a job demands at every angle of one iteration."""
        steps = max(round(use.period_s / self.step_s), 1)
        edges = np.arange(steps + 1) / steps - use.start_s / use.period_s % 1.0
        busy = min(use.busy_s / use.period_s, 1.0)
        busy_until = np.floor(edges) * busy + np.minimum(edges % 1.0, busy)
        profile: FloatArray = np.diff(busy_until) * steps * use.share
        return profile
