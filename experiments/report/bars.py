"""Horizontal bars: GPU utilisation by policy, the bars of evaluations, and the cells of sweeps."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.lines import Line2D

from experiments.report.figure import (
    MARGIN_PT,
    FigureData,
    ReportFigure,
    add_axes,
    add_label,
    add_legend,
    figure_settings,
    legend_height,
    new_figure,
    slug,
)
from experiments.report.findings import BarChart
from experiments.report.numbers import percent
from experiments.report.style import LineStyle, colour, series_colour
from experiments.scenarios.results import RunResult
from experiments.sweeps.grid import format_settings
from experiments.sweeps.summary import Cell

_ROW = 29.0
_BAR = 11.0
_BASELINE = 9.0  # of the words above a bar
_ROOM = 1.03  # beyond the longest bar


@dataclass(frozen=True, slots=True)
class _Row:
    """One bar below its words; ``limits`` are values by the name of their mark."""

    label: str
    words: str
    value: float
    colour: str
    is_published: bool = False
    deviation: float | None = None
    limits: Mapping[str, float] = field(default_factory=dict)

    @property
    def end(self) -> float:
        """The largest value that the row shows."""
        return max(self.value + (self.deviation or 0.0), *self.limits.values(), 0.0)


def utilisation_bars(results: Sequence[RunResult]) -> ReportFigure:
    """Draw the GPU utilisation of each policy, with the ideal and the fluid bound."""
    rows = [
        _Row(
            result.policy,
            percent(result.gpu_utilisation),
            result.gpu_utilisation,
            series_colour(place),
            limits={"ideal": result.ideal_gpu_utilisation, "fluid bound": result.fluid_bound_gpu_utilisation},
        )
        for place, result in enumerate(results)
    ]
    data = FigureData(
        ("policy", "gpu_utilisation", "ideal_gpu_utilisation", "fluid_bound_gpu_utilisation"),
        tuple((row.label, row.value, *row.limits.values()) for row in rows),
    )
    return _bars(f"{slug(results[0].scenario)}-utilisation", "GPU utilisation", rows, data)


def findings_bars(chart: BarChart) -> ReportFigure:
    """Draw the bars of an evaluation; values of a paper are hatched."""
    rows = [
        _Row(
            bar.label,
            bar.value,
            bar.share,
            colour("published") if bar.published else series_colour(0),
            bar.published,
            bar.deviation,
        )
        for bar in chart.bars
    ]
    data = FigureData(
        ("label", "value", "share", "deviation", "published"),
        tuple((bar.label, bar.value, bar.share, bar.deviation, str(bar.published).lower()) for bar in chart.bars),
    )
    return _bars(slug(chart.title), chart.title, rows, data)


def sweep_bars(cells: Sequence[Cell]) -> ReportFigure:
    """Draw the mean GPU utilisation of each cell of a sweep, with its standard deviation over the seeds.

    Cells without a finished run have no bar. Raises ValueError where no cell has one.
    """
    spreads = [(cell, cell.gpu_utilisation) for cell in cells if cell.gpu_utilisation is not None]
    if not spreads:
        raise ValueError("a figure of a sweep needs a finished run")
    places = {policy: place for place, policy in enumerate(dict.fromkeys(str(cell.policy) for cell, _ in spreads))}
    several = len({(cell.scenario, format_settings(cell.settings)) for cell, _ in spreads}) > 1
    rows = [
        _Row(
            ", ".join(filter(None, (cell.scenario, format_settings(cell.settings), cell.policy)))
            if several
            else cell.policy,
            f"{percent(spread.mean)} \N{PLUS-MINUS SIGN} {spread.deviation * 100:.1f}",
            spread.mean,
            series_colour(places[str(cell.policy)]),
            deviation=spread.deviation,
            limits={} if cell.limit is None else {"limit": cell.limit},
        )
        for cell, spread in spreads
    ]
    data = FigureData(
        ("scenario", "settings", "policy", "seeds", "mean", "deviation", "p5", "p50", "p95", "limit"),
        tuple(
            (
                *(cell.scenario, format_settings(cell.settings), str(cell.policy), cell.finished),
                *(spread.mean, spread.deviation, spread.p5, spread.p50, spread.p95, cell.limit),
            )
            for cell, spread in spreads
        ),
    )
    return _bars("sweep-utilisation", "GPU utilisation, mean and standard deviation over seeds", rows, data)


def _bars(name: str, title: str, rows: Sequence[_Row], data: FigureData) -> ReportFigure:
    """Draw rows under each other on one scale from 0."""
    handles = _legend(rows)
    above = MARGIN_PT + legend_height(len(handles), 3)
    description = f"{title}: " + ", ".join(f"{row.label} {row.words}" for row in rows)
    with figure_settings():
        figure = new_figure(above + _ROW * len(rows) + MARGIN_PT)
        add_legend(figure, MARGIN_PT, handles, 3)
        axes = add_axes(figure, above, _ROW * len(rows))
        axes.set_axis_off()
        axes.set_xlim(0, max(max(row.end for row in rows), 1e-12) * _ROOM)
        axes.set_ylim(_ROW * len(rows), 0)
        for place, row in enumerate(rows):
            top = _ROW * place
            add_label(figure, above + top + _BASELINE, row.label, row.words)
            _draw(axes, row, top + _BASELINE + 5)
    return ReportFigure(name, title, description, figure, data)


def _draw(axes: Axes, row: _Row, top: float) -> None:
    middle = top + _BAR / 2
    axes.barh(middle, axes.get_xlim()[1], _BAR, color=colour("track"))
    if row.is_published:
        axes.barh(middle, row.value, _BAR, facecolor="none", edgecolor=row.colour, hatch="////", linewidth=0.7)
    else:
        axes.barh(middle, row.value, _BAR, color=row.colour)
    for name, value in row.limits.items():
        axes.vlines(value, top - 2, top + _BAR + 2, colors=colour("ink"), linestyles=_LINES[name], linewidth=1.3)
    if row.deviation:
        axes.errorbar(row.value, middle, xerr=row.deviation, ecolor=colour("ink"), elinewidth=1.1, capsize=2.5)


_LINES: Mapping[str, LineStyle] = {"ideal": "solid", "fluid bound": (0, (1.5, 1.2)), "limit": "solid"}


def _legend(rows: Sequence[_Row]) -> list[Artist]:
    """Return an entry for every kind of mark that a label does not name."""
    names = dict.fromkeys(name for row in rows for name in row.limits)
    handles: list[Artist] = [
        Line2D([], [], color=colour("ink"), linestyle=_LINES[name], linewidth=1.3, label=name) for name in names
    ]
    if any(row.deviation for row in rows):
        words = "standard deviation"
        handles.append(Line2D([], [], color=colour("ink"), marker="|", markersize=5, linewidth=1.1, label=words))
    return handles
