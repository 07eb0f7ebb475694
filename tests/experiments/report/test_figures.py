"""Figures for notebooks and scripts."""

import subprocess
import sys
from dataclasses import replace

import pytest
from matplotlib.figure import Figure

from experiments.report import figures
from experiments.report.findings import (
    Bar,
    BarChart,
    Distribution,
    DistributionChart,
    Line,
    LineChart,
    Panel,
    PanelChart,
)
from experiments.sweeps.summary import Cell, Spread
from tests.experiments.report.builders import make_result

CHARTS = (
    BarChart("Bars", (Bar("a", "1", 1.0),)),
    DistributionChart("Curves", "error", (Distribution("a", 0, (0.1,)),)),
    LineChart("Lines", "seconds", "%", (Line("a", 0, ((1.0, 2.0), (2.0, 3.0))),), is_logarithmic=True),
    PanelChart("Panels", "", 1.0, (Panel("a", "", (1.0,), (0.5,)),)),
)


def test_every_plot_is_a_figure_of_its_own_and_pyplot_knows_none() -> None:
    result = make_result()
    cell = Cell("fig20", {}, "crux", 3, 0, Spread(0.5, 0.1, 0.4, 0.5, 0.6), 0.9, 2, 0.5)
    plotted = [
        figures.plot_utilisation([result]),
        figures.plot_timeline(result),
        figures.plot_link_loads(result),
        figures.plot_topology(result),
        figures.plot_recovery([result]),
        figures.plot_sweep([cell]),
        *map(figures.plot_chart, CHARTS),
    ]
    assert all(isinstance(figure, Figure) and figure.axes for figure in plotted)
    assert len({id(figure) for figure in plotted}) == len(plotted)


def test_pyplot_is_not_imported() -> None:
    code = "import sys, experiments.report.page; assert 'matplotlib.pyplot' not in sys.modules"
    subprocess.run([sys.executable, "-c", code], check=True)


def test_data_types_and_options_need_no_matplotlib() -> None:
    code = "import sys, experiments.report.findings, experiments.report.style; assert 'matplotlib' not in sys.modules"
    subprocess.run([sys.executable, "-c", code], check=True)


def test_a_run_without_loads_has_no_plot_of_them() -> None:
    with pytest.raises(ValueError, match="no load was recorded"):
        figures.plot_link_loads(replace(make_result(), loads=()))
