"""What failed and came back, marked in a picture over time."""

from collections.abc import Sequence

from experiments.report.axis import TimeAxis
from experiments.report.svg import Markup, joined, line, text
from workloads.events import ScenarioEvent

EVENT_ROW = 16.0
"""Height that every event takes below the picture."""

_GAP = 5.0


def event_marks(events: Sequence[ScenarioEvent], axis: TimeAxis, top: float, bottom: float) -> Markup:
    """Of each event a line from ``top`` down to a row of its own below ``bottom``, and there what happened."""
    return joined(_mark(event, axis, top, bottom + EVENT_ROW * number) for number, event in enumerate(events))


def _mark(event: ScenarioEvent, axis: TimeAxis, top: float, row: float) -> Markup:
    """Written towards the middle."""
    x, baseline = axis.x(event.at_s), row + EVENT_ROW - _GAP
    is_left = x < axis.left + axis.width / 2
    words = f"{event.in_words} at {event.at_s:g} s"
    place = text(x + _GAP, baseline, words, "note") if is_left else text(x - _GAP, baseline, words, "note", "end")
    return joined((line(x, top, x, baseline, "event"), place))
