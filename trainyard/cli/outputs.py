"""What commands leave behind: tables on stdout, a report page, and files of its figures."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from rich.console import Console

from experiments.report.style import FigureFormat
from experiments.scenarios.results import RunResult
from trainyard.cli.exits import fail, refuse

if TYPE_CHECKING:
    from experiments.report.findings import Findings
    from experiments.report.page import Report
    from experiments.sweeps.summary import Cell


def print_results(results: Sequence[RunResult]) -> None:
    """Print what people want to know of the results, compared with the first."""
    from trainyard.cli.tables import between_events, iteration_times, utilisation

    tables = [utilisation(results), iteration_times(results)]
    if results[0].events:
        tables.append(between_events(results))
    Console().print(*tables, sep="\n")


def print_overview(comparisons: Sequence[Sequence[RunResult]]) -> None:
    """Print the utilisation of every scenario under every policy; the policies are the same for all."""
    from trainyard.cli.tables import overview

    Console().print(overview(comparisons))


def prepare_folder(folder: Path) -> None:
    """Make a folder for a page, before the run that fills it; ends the command where that cannot be."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        refuse((f"{folder}: cannot be made: {error.strerror}",))


@dataclass(frozen=True, slots=True)
class ReportFiles:
    """Where a command writes its report: a page, a folder for every figure and its data, both or neither."""

    page: Path | None = None
    figures: Path | None = None
    figure_format: FigureFormat = FigureFormat.SVG

    def prepare(self) -> None:
        """Make the folders before the runs that fill them; ends the command where that cannot be.

        Raises:
            ModuleNotFoundError: A package of the extra ``report`` is missing, and there is something to write.
        """
        if self._is_asked_for:
            import experiments.report.page  # noqa: F401 - after hours of runs it would be too late to miss it
        if self.page is not None:
            prepare_folder(self.page.parent)
        if self.figures is not None:
            prepare_folder(self.figures)

    def save_runs(self, comparisons: Sequence[Sequence[RunResult]]) -> None:
        """Write the report of one or more scenarios, each under the same policies."""
        if self._is_asked_for:
            from experiments.report.page import runs_report

            self._save(runs_report(comparisons))

    def save_findings(self, findings: "Findings", runs: Sequence[Sequence[RunResult]] = ()) -> None:
        """Write the report of an evaluation, followed by runs of scenarios."""
        if self._is_asked_for:
            from experiments.report.page import findings_report

            self._save(findings_report(findings, runs))

    def save_sweep(self, cells: "Sequence[Cell]") -> None:
        """Write the report of a sweep, of whose runs one at least has finished."""
        if self._is_asked_for:
            from experiments.report.page import sweep_report

            self._save(sweep_report(cells))

    @property
    def _is_asked_for(self) -> bool:
        return self.page is not None or self.figures is not None

    def _save(self, report: "Report") -> None:
        """Write what is asked for and say on stderr where; ends the command where that fails."""
        asked = [path for path in (self.page, self.figures) if path is not None]
        try:
            report.write(self.page, self.figures, self.figure_format)
        except OSError as error:
            fail(f"{error.filename or asked[0]}: cannot be written: {error.strerror}")
        for path in asked:
            Console(stderr=True).print(f"wrote {path}", markup=False, highlight=False, soft_wrap=True)
