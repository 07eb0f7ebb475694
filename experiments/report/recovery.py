"""GPU utilisation over a whole run in which things fail: how far it falls, and whether it comes back."""

from collections.abc import Sequence

from experiments.report.axis import TimeAxis
from experiments.report.event_marks import EVENT_ROW, event_marks
from experiments.report.numbers import percent
from experiments.report.svg import Markup, element, joined, picture, rectangle, text
from experiments.scenarios.results import RunResult

_WIDTH = 1000.0
_LABELS = 132.0
_TOP = 6.0
_PANEL = 56.0
_ROW = 72.0
_TICKS = 10
_AXIS = 22.0


def recovery(results: Sequence[RunResult]) -> Markup:
    """A panel a policy, of which the top is 100 %, over the time that all of them measured, and what happened in it."""
    from_s = min(result.window_from_s for result in results)
    to_s = max(result.window_to_s for result in results)
    axis = TimeAxis(from_s, to_s, _LABELS, _WIDTH - _LABELS - 4)
    bottom = _TOP + _ROW * len(results)
    events = [event for event in results[0].events if from_s <= event.at_s <= to_s]
    lowest = (
        f"{result.policy} {percent(min(step.gpu_utilisation or 0.0 for step in result.steps))}" for result in results
    )
    return picture(
        _WIDTH,
        bottom + _AXIS + EVENT_ROW * len(events),
        "GPU utilisation over time; at the lowest: " + ", ".join(lowest),
        *(_panel(result, axis, _TOP + _ROW * number) for number, result in enumerate(results)),
        axis.draw(_TOP, bottom, _TICKS),
        event_marks(events, axis, _TOP, bottom + _AXIS),
    )


def _panel(result: RunResult, axis: TimeAxis, top: float) -> Markup:
    return joined(
        (
            text(0, top + 14, result.policy, "label"),
            text(0, top + 30, percent(result.gpu_utilisation), "note"),
            rectangle(axis.left, top, axis.width, _PANEL, "track"),
            *(
                rectangle(
                    axis.x(step.from_s),
                    top + _PANEL * (1 - step.gpu_utilisation),
                    axis.x(step.to_s) - axis.x(step.from_s),
                    _PANEL * step.gpu_utilisation,
                    "compute",
                    element("title", f"{step.from_s:.2f} to {step.to_s:.2f} s: {percent(step.gpu_utilisation)}"),
                )
                for step in result.steps
                if step.gpu_utilisation is not None
            ),
        )
    )
