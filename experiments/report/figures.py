"""Figures of results as plain matplotlib figures, for notebooks and scripts.

Every function returns a figure of its own: none is registered with pyplot, and no setting of matplotlib changes.
"""

from collections.abc import Sequence

from matplotlib.figure import Figure

from experiments.report.bars import findings_bars, sweep_bars, utilisation_bars
from experiments.report.curves import distribution_curves, panels
from experiments.report.figure import ReportFigure
from experiments.report.findings import BarChart, Chart, DistributionChart, LineChart
from experiments.report.lines import lines
from experiments.report.over_time import busiest_links, link_loads, load_limit, recovery, timeline
from experiments.report.time_axis import TimeSpan, close_look
from experiments.report.topology import HeatScale, topology
from experiments.scenarios.results import RunResult
from experiments.sweeps.summary import Cell

LINKS_SHOWN = 4


def plot_utilisation(results: Sequence[RunResult]) -> Figure:
    """Plot the GPU utilisation of each policy, with the ideal and the fluid bound."""
    return utilisation_bars(results).figure


def plot_timeline(result: RunResult, span: TimeSpan | None = None) -> Figure:
    """Plot computation and communication of every job, over a few iterations where no span is given."""
    return timeline(result, span or close_look([result])).figure


def plot_link_loads(result: RunResult, links: Sequence[int] = (), span: TimeSpan | None = None) -> Figure:
    """Plot the load of links by level over time, of the busiest between switches where none are given.

    Raises:
        ValueError: The run recorded no load on any link between switches.
    """
    shown = tuple(links) or (busiest_links([result], LINKS_SHOWN) if result.loads else ())
    if not shown:
        raise ValueError("no load was recorded on any link between switches")
    return link_loads(result, shown, span or close_look([result]), load_limit([result], shown)).figure


def plot_topology(result: RunResult) -> Figure:
    """Plot the fabric: cables in the colour of the GPU intensity that they carry, and as thick as their load."""
    return topology(result, HeatScale.of([result])).figure


def plot_recovery(results: Sequence[RunResult]) -> Figure:
    """Plot GPU utilisation over a run with failures, a panel for each policy."""
    return recovery(results).figure


def plot_chart(chart: Chart) -> Figure:
    """Plot a chart of an evaluation."""
    return chart_figure(chart).figure


def plot_sweep(cells: Sequence[Cell]) -> Figure:
    """Plot the mean GPU utilisation of each cell of a sweep, with its standard deviation over the seeds.

    Raises:
        ValueError: No run of the sweep has finished.
    """
    return sweep_bars(cells).figure


def chart_figure(chart: Chart) -> ReportFigure:
    """Return the figure of a chart with its data."""
    if isinstance(chart, BarChart):
        return findings_bars(chart)
    if isinstance(chart, DistributionChart):
        return distribution_curves(chart)
    if isinstance(chart, LineChart):
        return lines(chart)
    return panels(chart)
