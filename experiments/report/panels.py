"""Shares of a whole over days, a panel under the other: what was to be had, and what was made of it."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from experiments.report.svg import Markup, element, joined, line, picture, rectangle, text

_WIDTH = 1000.0
_LABELS = 132.0
_PLOT = _WIDTH - _LABELS
_PANEL = 70.0
_ROW = 84.0
_MOST_STEPS = 336
"""Finer steps cannot be told apart; more of them are averaged."""


@dataclass(frozen=True, slots=True)
class Panel:
    """Two series over equal intervals, each value a part of the scale, 0 to 1: ``part`` is of ``whole``."""

    label: str
    note: str
    whole: Sequence[float]
    part: Sequence[float]


@dataclass(frozen=True, slots=True)
class PanelChart:
    """Panels over the same ``days``, on one scale of which ``scale`` says what its top is."""

    title: str
    scale: str
    days: float
    panels: tuple[Panel, ...]


def draw_panels(chart: PanelChart) -> Markup:
    """The picture."""
    bottom = _ROW * len(chart.panels)
    return picture(
        _WIDTH,
        bottom + 22,
        f"{chart.title}: " + ", ".join(f"{panel.label} {panel.note}" for panel in chart.panels),
        *(_panel(panel, chart.scale, _ROW * number) for number, panel in enumerate(chart.panels)),
        *_days(chart.days, bottom),
    )


def _panel(panel: Panel, scale: str, top: float) -> Markup:
    bottom = top + _PANEL
    return joined(
        (
            text(0, top + 14, panel.label, "label"),
            text(0, top + 30, panel.note, "note"),
            text(0, top + 46, scale, "note"),
            rectangle(_LABELS, top, _PLOT, _PANEL, "track"),
            _area(panel.whole, bottom, "level-0"),
            _area(panel.part, bottom, "compute"),
        )
    )


def _area(values: Sequence[float], bottom: float, class_: str) -> Markup:
    """The area under steps."""
    step = -(-len(values) // _MOST_STEPS) or 1
    places = [(_LABELS, bottom)]
    for first in range(0, len(values), step):
        some = values[first : first + step]
        y = bottom - _PANEL * min(sum(some) / len(some), 1.0)
        places += [(_LABELS + _PLOT * at / len(values), y) for at in (first, first + len(some))]
    places.append((_WIDTH, bottom))
    return element("polygon", points=" ".join(f"{x:.1f},{y:.1f}" for x, y in places), class_=class_)


def _days(days: float, bottom: float) -> Iterator[Markup]:
    """A rule at the end of every day, or of every so many that they have room."""
    every = max(1, round(days / 14))
    for day in range(0, int(days) + 1, every):
        x = _LABELS + _PLOT * day / days
        yield line(x, 0, x, bottom - (_ROW - _PANEL), "rule")
        yield text(x, bottom + 15, f"day {day}", "tick", "start" if day == 0 else "middle" if x < _WIDTH else "end")
