"""What commands write: report pages, figures, and what happened over time."""

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from experiments.report.style import FigureFormat
from trainyard.cli.exits import fail, refuse
from trainyard.cli.output import PrintableConsole

if TYPE_CHECKING:
    from experiments.report.findings import Findings
    from experiments.report.page import Report
    from experiments.scenarios.results import RunResult
    from experiments.sweeps.summary import Cell


@dataclass(frozen=True, slots=True)
class ReportFiles:
    """Where a command writes its report: a page, a folder for every figure and its data, both or neither.

    ``perfetto`` is where it writes what happened in the runs of a scenario over time.
    """

    page: Path | None = None
    figures: Path | None = None
    figure_format: FigureFormat = FigureFormat.SVG
    perfetto: Path | None = None

    def prepare(self) -> None:
        """Make the folders before the runs that fill them, or end the command.

        Raises:
            ModuleNotFoundError: A package of the extra ``report`` is missing, and there is something to write.
        """
        if self.is_asked_for:
            import experiments.report.page  # noqa: F401 - to miss a package after hours of runs would be too late
        for file in (self.page, self.perfetto):
            if file is not None:
                _make_folder(file.parent)
        if self.figures is not None:
            _make_folder(self.figures)

    def save_runs(self, comparisons: "Sequence[Sequence[RunResult]]") -> None:
        """Write the report of one or more scenarios, each under the same policies."""
        if self.is_asked_for:
            from experiments.report.page import runs_report

            self.save(runs_report(comparisons))

    def save_perfetto(self, results: "Sequence[RunResult]") -> None:
        """Write what happened in the runs of one scenario over time."""
        if self.perfetto is not None:
            from experiments.report.perfetto import write_perfetto

            try:
                write_perfetto(results, self.perfetto)
            except OSError as error:
                fail(f"{self.perfetto}: cannot be written: {error.strerror}")
            _say_written(self.perfetto)

    def save_trace(self, events: Iterable[Mapping[str, Any]]) -> None:
        """Write events of the Trace Event Format where what happened over time goes."""
        if self.perfetto is not None:
            write_trace(events, self.perfetto)
            _say_written(self.perfetto)

    def save_findings(self, findings: "Findings", runs: "Sequence[Sequence[RunResult]]" = ()) -> None:
        """Write the report of an evaluation, followed by runs of scenarios."""
        if self.is_asked_for:
            from experiments.report.page import findings_report

            self.save(findings_report(findings, runs))

    def save_sweep(self, cells: "Sequence[Cell]") -> None:
        """Write the report of a sweep; one of its runs at least has finished."""
        if self.is_asked_for:
            from experiments.report.page import sweep_report

            self.save(sweep_report(cells))

    @property
    def is_asked_for(self) -> bool:
        """Whether a page or figures are."""
        return self.page is not None or self.figures is not None

    def save(self, report: "Report") -> None:
        """Write the report and say on stderr where it is, or end the command."""
        paths = [path for path in (self.page, self.figures) if path is not None]
        try:
            report.write(self.page, self.figures, self.figure_format)
        except OSError as error:
            fail(f"{error.filename or paths[0]}: cannot be written: {error.strerror}")
        for path in paths:
            _say_written(path)


def write_trace(events: Iterable[Mapping[str, Any]], file: Path) -> None:
    """Write events of the Trace Event Format for Perfetto or Chrome, or end the command."""
    try:
        file.write_text(json.dumps({"traceEvents": list(events)}), encoding="utf-8")
    except OSError as error:
        fail(f"{file}: cannot be written: {error.strerror}")


def _say_written(path: Path) -> None:
    PrintableConsole(stderr=True).print(f"wrote {path}", markup=False, highlight=False, soft_wrap=True)


def _make_folder(folder: Path) -> None:
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        refuse(f"{folder}: cannot be made: {error.strerror}")
