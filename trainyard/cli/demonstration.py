"""``trainyard demo``."""

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import typer

from experiments.report.style import FigureFormat
from experiments.scenarios.backend import Backend
from trainyard.cli.backend import run_all
from trainyard.cli.inputs import FigureFormatOption, FiguresOption, read_scenario
from trainyard.cli.outputs import ReportFiles, print_overview, print_results
from workloads.loading import SHIPPED_SCENARIOS

SCENARIOS = ("fig19-n4", "fig20", "pipeline", "fewer-uplinks")
POLICIES = ("ecmp", "crux-pa", "crux")

FAILURE_SCENARIOS = ("failing-cable",)
FAILURE_POLICIES = ("ecmp", "crux")

FailuresOption = Annotated[
    bool, typer.Option("--failures", help="A mix on a fabric that fails instead: a cable dies, then a switch.")
]
OutOption = Annotated[Path, typer.Option("--out", metavar="DIR", file_okay=False, help="Where the page goes.")]


def demo(
    failures: FailuresOption = False,
    out: OutOption = Path("out"),
    figures: FiguresOption = None,
    figure_format: FigureFormatOption = FigureFormat.SVG,
) -> None:
    """Run mixes of the paper without scheduling, with levels alone, and with paths too; ends with tables and a page."""
    if failures:
        _show(FAILURE_SCENARIOS, FAILURE_POLICIES, ReportFiles(out / "failures.html", figures, figure_format))
    else:
        _show(SCENARIOS, POLICIES, ReportFiles(out / "demo.html", figures, figure_format))


def _show(names: Sequence[str], policies: Sequence[str], files: ReportFiles) -> None:
    scenarios = [read_scenario(SHIPPED_SCENARIOS / f"{name}.yaml") for name in names]
    files.prepare()
    comparisons = []
    for scenario in scenarios:
        comparisons.append(list(run_all(scenario, policies, Backend.EMULATOR)))
        print_results(comparisons[-1])
    print_overview(comparisons)
    files.save_runs(comparisons)
