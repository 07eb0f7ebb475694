"""The time axis of figures of runs: which seconds to show, ticks, and marks of failures."""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from experiments.report.figure import MARGIN_PT, add_text, shortened
from experiments.report.style import SMALL_FONT_PT, WIDTH_PT, LineStyle, colour
from experiments.scenarios.results import RunResult
from workloads.events import ElementState, ScenarioEvent

_ITERATIONS_SHOWN = 3.5
_TICK_ROW = 14.0
_EVENT_ROW = 11.0
_EDGE = 0.04


@dataclass(frozen=True, slots=True)
class TimeSpan:
    """Seconds from one time to another."""

    from_s: float
    to_s: float

    def shows(self, start_s: float, end_s: float) -> bool:
        """Tell whether any part of an interval lies inside."""
        return end_s > self.from_s and start_s < self.to_s

    def clipped(self, time_s: float) -> float:
        """Return a time, or the nearer end where it lies outside."""
        return min(max(time_s, self.from_s), self.to_s)


@dataclass(frozen=True, slots=True)
class Outage:
    """An element that is down; ``to_s`` is infinite where it never comes back."""

    element: tuple[object, ...]
    from_s: float
    to_s: float


def close_look(results: Sequence[RunResult]) -> TimeSpan:
    """Return a few iterations of the slowest job, the same seconds for every policy.

    They lie around the first event inside the measured window, or in the middle of the window.
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
    return TimeSpan(middle_s - length_s / 2, middle_s + length_s / 2)


def outages(events: Sequence[ScenarioEvent]) -> list[Outage]:
    """Return the time that each element is down, from its events in order of time."""
    down: dict[tuple[object, ...], float] = {}
    found = []
    for event in sorted(events, key=lambda event: event.at_s):
        element = event.link or (), event.parallel, event.switch, event.host, event.controller
        if event.state is ElementState.DOWN:
            down.setdefault(element, event.at_s)
        elif element in down:
            found.append(Outage(element, down.pop(element), event.at_s))
    found += [Outage(element, from_s, math.inf) for element, from_s in down.items()]
    return sorted(found, key=lambda outage: outage.from_s)


def show_time(axes: Axes, span: TimeSpan, *, labelled: bool) -> None:
    """Give axes a time axis with round ticks."""
    axes.set_xlim(span.from_s, span.to_s)
    show_ticks(
        axes,
        MaxNLocator(5, steps=[1, 2, 5, 10]).tick_values(span.from_s, span.to_s),
        lambda time_s: f"{time_s:g} s",
        labelled=labelled,
    )


def show_ticks(axes: Axes, values: Sequence[float], words: Callable[[float], str], *, labelled: bool = True) -> None:
    """Draw a rule at each value inside the axes; labels at the edges stay inside the figure."""
    left, right = axes.get_xlim()
    inside = [float(value) for value in values if left <= value <= right]
    axes.set_xticks(inside, [words(round(value, 6)) if labelled else "" for value in inside])
    axes.grid(axis="x")
    for value, label in zip(inside, axes.get_xticklabels(), strict=True):
        place = (value - left) / (right - left)
        label.set_horizontalalignment("left" if place < _EDGE else "right" if place > 1 - _EDGE else "center")


def mark_events(
    axes: Axes, events: Sequence[ScenarioEvent], span: TimeSpan, bands: Sequence[tuple[float, float]]
) -> None:
    """Shade outages and draw a line at every event, inside bands of the vertical axis and never over words."""
    for bottom, top in bands:
        for outage in outages(events):
            if span.shows(outage.from_s, outage.to_s):
                times = [span.clipped(outage.from_s), span.clipped(outage.to_s)]
                axes.fill_between(times, bottom, top, color=colour("event"), alpha=0.18, linewidth=0, zorder=1.5)
        for event in shown_events(events, span):
            dashes: LineStyle = "solid" if event.state is ElementState.DOWN else (0, (2, 1.5))
            axes.vlines(event.at_s, bottom, top, colors=colour("event"), linestyles=dashes, linewidth=1.1, zorder=4)


def shown_events(events: Sequence[ScenarioEvent], span: TimeSpan) -> list[ScenarioEvent]:
    """Return the events inside a span."""
    return [event for event in events if span.from_s <= event.at_s <= span.to_s]


def event_key_height(events: Sequence[ScenarioEvent], span: TimeSpan) -> float:
    """Return the height of the words below a time axis: its ticks, and a line for each event."""
    shown = len(shown_events(events, span))
    return _TICK_ROW + (_EVENT_ROW * shown + 4 if shown else 0.0)


def add_event_key(
    figure: Figure, events: Sequence[ScenarioEvent], span: TimeSpan, left_pt: float, top_pt: float, bottom_pt: float
) -> None:
    """Number the events at ``top_pt``, and say below the ticks of the axis what each number stands for."""
    width_pt = WIDTH_PT - MARGIN_PT - left_pt
    for number, event in enumerate(shown_events(events, span), start=1):
        x_pt = left_pt + width_pt * (event.at_s - span.from_s) / (span.to_s - span.from_s)
        _add_event_text(figure, top_pt, str(number), x_pt, ha="center", fontweight="bold")
        words = f"{number}  {event.in_words} at {event.at_s:g} s"
        _add_event_text(figure, bottom_pt + _TICK_ROW + _EVENT_ROW * number, shortened(words, 54), MARGIN_PT)


def _add_event_text(figure: Figure, top_pt: float, words: str, x_pt: float, **properties: Any) -> None:
    add_text(figure, top_pt, words, x_pt, color=colour("event"), fontsize=SMALL_FONT_PT, **properties)
