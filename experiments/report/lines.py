"""Charts of lines on common axes: how something develops under several methods."""

from matplotlib.lines import Line2D

from experiments.report.figure import (
    MARGIN_PT,
    FigureData,
    ReportFigure,
    add_axes,
    add_legend,
    figure_settings,
    legend_height,
    new_figure,
    shortened,
    slug,
)
from experiments.report.findings import LineChart
from experiments.report.style import SMALL_FONT_PT, colour, series_colour

_HEIGHT = 170.0
_LEFT = 44.0
_BELOW = 30.0


def lines(chart: LineChart) -> ReportFigure:
    """Draw the lines, straight from point to point."""
    with figure_settings():
        handles = [
            Line2D([], [], color=series_colour(line.colour), label=shortened(line.label, 24)) for line in chart.lines
        ]
        figure = new_figure(MARGIN_PT + _HEIGHT + _BELOW + legend_height(len(handles), 2))
        axes = add_axes(figure, MARGIN_PT, _HEIGHT, _LEFT)
        if chart.is_logarithmic:
            axes.set_xscale("log")
        for line in chart.lines:
            axes.plot(*zip(*line.points, strict=True), color=series_colour(line.colour), linewidth=1.5)
        axes.grid(axis="y")
        axes.set_xlabel(chart.x_name, fontsize=SMALL_FONT_PT, color=colour("quiet"), labelpad=2)
        axes.set_ylabel(chart.y_name, fontsize=SMALL_FONT_PT, color=colour("quiet"), labelpad=1)
        add_legend(figure, MARGIN_PT + _HEIGHT + _BELOW, handles, 2)
    ends = ", ".join(f"{line.label} {line.points[-1][1]:.4g}" for line in chart.lines)
    data = FigureData(
        ("label", chart.x_name, chart.y_name), tuple((line.label, x, y) for line in chart.lines for x, y in line.points)
    )
    return ReportFigure(slug(chart.title), chart.title, f"{chart.title}: at the end {ends}", figure, data)
