"""Charts of evaluations over many cases or many days: cumulative distributions, and shares of a whole over time."""

from collections.abc import Sequence
from math import ceil, floor

import numpy as np
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.lines import Line2D
from matplotlib.ticker import MaxNLocator

from experiments.report.figure import (
    MARGIN_PT,
    FigureData,
    ReportFigure,
    Value,
    add_axes,
    add_label,
    add_legend,
    figure_settings,
    legend_height,
    new_figure,
    shortened,
    slug,
)
from experiments.report.findings import Distribution, DistributionChart, Panel, PanelChart
from experiments.report.numbers import percent
from experiments.report.style import SMALL_FONT_PT, LineStyle, colour, series_colour
from experiments.report.time_axis import show_ticks

_MOST_POINTS = 400
_MOST_STEPS = 252
"""Readers cannot distinguish finer steps; more values are averaged."""

_UNITS = (0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1)
"""Steps of the value axis, of which it has at most ten."""

_CURVES_HEIGHT = 170.0
_LEFT = 36.0
_BELOW = 30.0
_DASHES: tuple[LineStyle, ...] = (
    "solid",
    (0, (5, 1.5)),
    (0, (1.5, 1)),
    (0, (5, 1.5, 1.5, 1.5)),
    (0, (7, 2, 1, 2, 1, 2)),
)

_PANEL = 40.0
_PANEL_ROW = 56.0
_BASELINE = 9.0


def distribution_curves(chart: DistributionChart) -> ReportFigure:
    """Draw the share of cases up to each value; circles are points that a paper published."""
    handles = _curve_legend(chart.distributions)
    points = {place: _points(each.values) for place, each in enumerate(chart.distributions)}
    means = (f"{each.label} {sum(each.values) / len(each.values):.1%}" for each in chart.distributions)
    below = _BELOW + legend_height(len(handles), 2)
    with figure_settings():
        figure = new_figure(MARGIN_PT + _CURVES_HEIGHT + below)
        axes = add_axes(figure, MARGIN_PT, _CURVES_HEIGHT, _LEFT)
        axes.set_xlim(*_limits(chart.distributions))
        axes.set_ylim(0, 1.02)
        values = MaxNLocator(5).tick_values(*axes.get_xlim())
        show_ticks(axes, values, lambda value: f"{value * 100:.4g}\N{NO-BREAK SPACE}%")
        axes.yaxis.set_major_formatter(lambda share, _: percent(share, 0))
        axes.grid(axis="y")
        axes.set_xlabel(chart.quantity, fontsize=SMALL_FONT_PT, color=colour("quiet"), labelpad=2)
        axes.set_ylabel("share of cases", fontsize=SMALL_FONT_PT, color=colour("quiet"), labelpad=1)
        for place, each in enumerate(chart.distributions):
            _draw_curve(axes, each, points[place])
        add_legend(figure, MARGIN_PT + _CURVES_HEIGHT + _BELOW, handles, 2)
    rows: list[tuple[Value, ...]] = []
    for place, each in enumerate(chart.distributions):
        rows += [(each.label, "measured", value, share) for value, share in points[place]]
        rows += [(each.label, "published", value, share) for value, share in each.published]
    data = FigureData(("label", "source", chart.quantity, "share_of_cases"), tuple(rows))
    description = f"{chart.title}: mean {chart.quantity} " + ", ".join(means)
    return ReportFigure(slug(chart.title), chart.title, description, figure, data)


def panels(chart: PanelChart) -> ReportFigure:
    """Draw two shares over days in a panel for each series of the chart."""
    averaged = [(panel, _averaged(panel.whole), _averaged(panel.part)) for panel in chart.panels]
    with figure_settings():
        figure = new_figure(MARGIN_PT + _PANEL_ROW * len(chart.panels) + 16)
        for place, (panel, whole, part) in enumerate(averaged):
            top = MARGIN_PT + _PANEL_ROW * place
            add_label(figure, top + _BASELINE, panel.label, f"{panel.note}, {chart.scale}")
            axes = add_axes(figure, top + _BASELINE + 4, _PANEL)
            axes.set_xlim(0, chart.days)
            axes.set_ylim(0, 1)
            axes.set_yticks([])
            days = MaxNLocator(5, integer=True).tick_values(0, chart.days)
            show_ticks(axes, days, lambda day: f"day {day:g}", labelled=place + 1 == len(averaged))
            for values, name in ((whole, "series-5"), (part, "series-0")):
                edges = np.linspace(0, chart.days, len(values) + 1)
                axes.stairs(np.minimum(values, 1.0), edges, fill=True, color=colour(name))
    data = FigureData(
        ("label", "from_day", "to_day", "whole", "part"),
        tuple(row for panel, whole, part in averaged for row in _panel_rows(panel, whole, part, chart.days)),
    )
    description = f"{chart.title}: " + ", ".join(f"{panel.label} {panel.note}" for panel in chart.panels)
    return ReportFigure(slug(chart.title), chart.title, description, figure, data)


def _points(values: Sequence[float]) -> list[tuple[float, float]]:
    """Return pairs of a value and the share of cases up to it, at most about 800 of them and the last always."""
    ordered = sorted(values)
    step = max(len(ordered) // _MOST_POINTS, 1)
    places = sorted({*range(0, len(ordered), step), len(ordered) - 1})
    return [(ordered[place], (place + 1) / len(ordered)) for place in places]


def _limits(distributions: Sequence[Distribution]) -> tuple[float, float]:
    """Return round limits of the value axis that hold what was measured: 0 to 10 % for errors below 10 %."""
    values = [value for each in distributions for value in each.values]
    low, high = min(values), max(values)
    unit = next((unit for unit in _UNITS if high - low <= 10 * unit), _UNITS[-1])
    low = 0.0 if low < (high - low) / 2 else floor(low / unit + 1e-9) * unit
    return low, max(ceil(high / unit - 1e-9) * unit, low + unit)


def _draw_curve(axes: Axes, each: Distribution, points: Sequence[tuple[float, float]]) -> None:
    """Draw steps from no case at the left edge to all cases at the right edge."""
    left, right = axes.get_xlim()
    values, shares = zip((left, 0.0), *points, (right, 1.0), strict=True)
    shown = series_colour(each.colour)
    axes.plot(values, shares, drawstyle="steps-post", color=shown, linestyle=_dashes(each), linewidth=1.5)
    for value, share in each.published:
        marker, at = ("o", value) if value <= right else (">", right)
        axes.plot(at, share, marker, markersize=5, markerfacecolor="none", markeredgecolor=shown, clip_on=False)


def _dashes(each: Distribution) -> LineStyle:
    return _DASHES[each.colour % len(_DASHES)]


def _curve_legend(distributions: Sequence[Distribution]) -> list[Artist]:
    handles: list[Artist] = [
        Line2D([], [], color=series_colour(each.colour), linestyle=_dashes(each), label=shortened(each.label, 24))
        for each in distributions
    ]
    published = [value for each in distributions for value, _ in each.published]
    right = _limits(distributions)[1]
    for marker, words, is_shown in (
        ("o", "published", any(value <= right for value in published)),
        (">", "published, farther right", any(value > right for value in published)),
    ):
        if is_shown:
            mark = Line2D([], [], linestyle="none", marker=marker, markerfacecolor="none", color=colour("ink"))
            mark.set_label(words)
            handles.append(mark)
    return handles


def _averaged(values: Sequence[float]) -> list[float]:
    """Return means over equal numbers of values, as many as a reader can distinguish."""
    step = -(-len(values) // _MOST_STEPS) or 1
    return [float(np.mean(values[first : first + step])) for first in range(0, len(values), step)]


def _panel_rows(panel: Panel, whole: Sequence[float], part: Sequence[float], days: float) -> list[tuple[Value, ...]]:
    edges = np.linspace(0, days, len(whole) + 1).tolist()
    return [(panel.label, edges[place], edges[place + 1], whole[place], part[place]) for place in range(len(whole))]
