"""A stretch of time drawn from left to right, and which stretch of a run is worth a close look."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

from experiments.report.svg import Markup, joined, line, text
from experiments.scenarios.results import RunResult

_ITERATIONS_SHOWN = 3.5
_TICK_STEPS = (1.0, 2.0, 5.0, 10.0)


@dataclass(frozen=True, slots=True)
class TimeAxis:
    """Seconds ``from_s`` to ``to_s`` on ``width`` units from ``left`` on."""

    from_s: float
    to_s: float
    left: float
    width: float

    def x(self, time_s: float) -> float:
        """Where a time lies; times outside lie on the nearer edge."""
        inside_s = min(max(time_s, self.from_s), self.to_s)
        return self.left + (inside_s - self.from_s) / (self.to_s - self.from_s) * self.width

    def shows(self, start_s: float, end_s: float) -> bool:
        """Whether any of an interval can be seen."""
        return end_s > self.from_s and start_s < self.to_s

    def draw(self, top: float, bottom: float, num_ticks: int) -> Markup:
        """About ``num_ticks`` round times, each with a rule from ``top`` to ``bottom`` and its seconds underneath."""
        step_s = _round_step((self.to_s - self.from_s) / num_ticks)
        decimals = max(0, -math.floor(math.log10(step_s) + 1e-9))
        first, last = math.ceil(self.from_s / step_s - 1e-9), math.floor(self.to_s / step_s + 1e-9)
        return joined(
            joined(
                (
                    line(self.x(number * step_s), top, self.x(number * step_s), bottom, "rule"),
                    text(self.x(number * step_s), bottom + 15, f"{number * step_s:.{decimals}f} s", "tick", "middle"),
                )
            )
            for number in range(first, last + 1)
        )


def close_look(results: Sequence[RunResult]) -> tuple[float, float]:
    """A few iterations of the slowest job, the same seconds for every policy.

    In the middle of what was measured, or about the first event in it.
    """
    from_s = max(result.window_from_s for result in results)
    to_s = min(result.window_to_s for result in results)
    if to_s <= from_s:
        from_s, to_s = 0.0, max(result.ended_s for result in results) or 1.0
    slowest_s = max(
        (job.iteration_time_s or job.ideal_iteration_time_s for result in results for job in result.jobs), default=0.0
    )
    length_s = min(to_s - from_s, _ITERATIONS_SHOWN * slowest_s or math.inf)
    events_s = [event.at_s for result in results for event in result.events if from_s <= event.at_s <= to_s]
    middle_s = min(events_s, default=(from_s + to_s) / 2)
    middle_s = min(max(middle_s, from_s + length_s / 2), to_s - length_s / 2)
    return middle_s - length_s / 2, middle_s + length_s / 2


def _round_step(least: float) -> float:
    """The smallest round number that is no less."""
    power = 10.0 ** math.floor(math.log10(least))
    return next(power * step for step in _TICK_STEPS if power * step >= least * (1 - 1e-9))
