"""What commands print and write: tables, paths in words, report pages and figures."""

import json
import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

from rich import box
from rich.console import Console, ConsoleOptions, RenderableType
from rich.markup import escape
from rich.segment import Segment
from rich.style import StyleType
from rich.table import Table
from rich.text import Text

from experiments.report.style import FigureFormat
from topologies.printable import printable
from trainyard.cli.exits import fail, refuse

if TYPE_CHECKING:
    from experiments.report.findings import Findings
    from experiments.report.page import Report
    from experiments.scenarios.results import RunResult
    from experiments.sweeps.summary import Cell


_WIDE = 1_000
"""Columns, where no terminal limits them."""
_LAYOUT = "\n\N{NO-BREAK SPACE}"


class PrintableConsole(Console):
    """A console that escapes what is not printable in what it shows, so that no name controls the terminal.

    What goes to a file or a pipe is as wide as it needs to be, unless ``COLUMNS`` is set.
    """

    def __init__(self, *, file: IO[str] | None = None, width: int | None = None, stderr: bool = False) -> None:
        super().__init__(file=file, width=width, stderr=stderr)
        if width is None and not self.is_terminal and not os.environ.get("COLUMNS"):
            self.width = _WIDE

    def render(self, renderable: RenderableType, options: ConsoleOptions | None = None) -> Iterable[Segment]:
        """Render as a console does, with text escaped."""
        for segment in super().render(renderable, options):
            yield segment if segment.control else Segment(_shown(segment.text), segment.style)


class PrintableTable(Table):
    """A table that escapes what is not printable in its cells, before it measures them, and reads no markup in them."""

    def add_row(self, *cells: RenderableType | None, style: StyleType | None = None, end_section: bool = False) -> None:
        """Add a row of cells."""
        super().add_row(*map(_shown_cell, cells), style=style, end_section=end_section)


def _shown_cell(cell: RenderableType | None) -> RenderableType | None:
    if isinstance(cell, Text):
        return cell if cell.plain.isprintable() else Text(_shown(cell.plain), cell.style)
    return escape(_shown(cell)) if isinstance(cell, str) else cell


def _shown(text: str) -> str:
    if text.isprintable():
        return text
    return "".join(each if each in _LAYOUT else printable(each) for each in text)


def number_table(title: str, *columns: str, left: Sequence[str] = ()) -> Table:
    """Return an empty table of numbers: columns are flush right but for the first one and those named ``left``.

    On a narrow terminal cells continue on the next line. Nothing is cut while the headings fit.
    """
    table = PrintableTable(
        title=Text(_shown(title)),
        title_justify="left",
        title_style="bold",
        box=box.SIMPLE_HEAD,
        collapse_padding=True,
        pad_edge=False,
    )
    for position, column in enumerate(columns):
        table.add_column(
            Text(_shown(column)),
            justify="right" if position and column not in left else "left",
            overflow="fold",
            min_width=max(map(len, column.split())),
        )
    return table


def path_words(nodes: Sequence[str], links: Sequence[int]) -> str:
    """Return a path as ``h0.0>t0.1>h2``; from ``t0.1`` it takes the second of the parallel links to the next node."""
    return ">".join((*(f"{node}.{link}" for node, link in zip(nodes, links, strict=False)), nodes[-1]))


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
        if self._is_asked_for:
            import experiments.report.page  # noqa: F401 - to miss a package after hours of runs would be too late
        for file in (self.page, self.perfetto):
            if file is not None:
                _make_folder(file.parent)
        if self.figures is not None:
            _make_folder(self.figures)

    def save_runs(self, comparisons: "Sequence[Sequence[RunResult]]") -> None:
        """Write the report of one or more scenarios, each under the same policies."""
        if self._is_asked_for:
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

    def save_findings(self, findings: "Findings", runs: "Sequence[Sequence[RunResult]]" = ()) -> None:
        """Write the report of an evaluation, followed by runs of scenarios."""
        if self._is_asked_for:
            from experiments.report.page import findings_report

            self.save(findings_report(findings, runs))

    def save_sweep(self, cells: "Sequence[Cell]") -> None:
        """Write the report of a sweep; one of its runs at least has finished."""
        if self._is_asked_for:
            from experiments.report.page import sweep_report

            self.save(sweep_report(cells))

    @property
    def _is_asked_for(self) -> bool:
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
