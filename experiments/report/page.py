"""Self-contained HTML pages of runs, evaluations and sweeps, and the files of their figures."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from jinja2 import Environment, FileSystemLoader, StrictUndefined

from experiments.report.bars import sweep_bars
from experiments.report.comparison import Article, Cell, Section, Table, comparison
from experiments.report.figure import ReportFigure, embedded_svg, save_figures, with_unique_names
from experiments.report.figures import chart_figure
from experiments.report.findings import Findings, FindingsTable
from experiments.report.numbers import count, percent, slowdown
from experiments.report.style import COLOURS, FigureFormat
from experiments.scenarios.results import RunResult
from experiments.sweeps.grid import format_settings
from experiments.sweeps.summary import Cell as SweepCell

Comparisons = Sequence[Sequence[RunResult]]
"""The results of each scenario, the policy to compare with first, the same policies in the same order everywhere."""


@dataclass(frozen=True, slots=True)
class Report:
    """A page that is not written yet."""

    title: str
    articles: tuple[Article, ...]
    overview: Table | None = None

    @property
    def figures(self) -> tuple[ReportFigure, ...]:
        """All figures in the order of the page; their names are unique."""
        return tuple(figure for article in self.articles for part in article.sections for figure in part.figures)

    def html(self) -> str:
        """Return the whole page, which needs no other file."""
        environment = Environment(
            loader=FileSystemLoader(Path(__file__).parent / "templates"),
            autoescape=True,
            undefined=StrictUndefined,
            trim_blocks=True,
            lstrip_blocks=True,
            keep_trailing_newline=True,
        )
        # The SVG comes from an XML serialiser, which has escaped every name in it: the template marks it as safe.
        svg = {figure.name: embedded_svg(figure) for figure in self.figures}
        return environment.get_template("page.html").render(report=self, svg=svg, colours=COLOURS)

    def write(
        self, page: Path | None = None, figures: Path | None = None, file_format: FigureFormat = FigureFormat.SVG
    ) -> None:
        """Write the page, and every figure with its data as CSV into a folder. Raises OSError."""
        if page is not None:
            page.write_text(self.html(), encoding="utf-8")
        if figures is not None:
            save_figures(self.figures, figures, file_format)


def runs_report(comparisons: Comparisons) -> Report:
    """Return the report of one or more scenarios; an overview stands in front of several.

    Raises:
        ValueError: There is no scenario, a scenario has no result, or its results are those of several.
    """
    articles = [comparison(results, _anchor(number)) for number, results in enumerate(comparisons)]
    if not articles:
        raise ValueError("a report needs results of a scenario at least")
    names = ", ".join(results[0].scenario for results in comparisons)
    overview = _overview(comparisons) if len(articles) > 1 else None
    return Report(f"Trainyard: {names}", _with_unique_names(articles), overview)


def findings_report(findings: Findings, runs: Comparisons = ()) -> Report:
    """Return the report of an evaluation, followed by an article for each scenario of ``runs``."""
    sections = (
        Section("Tables", tables=tuple(map(_findings_table, findings.tables))),
        Section("Figures", figures=tuple(map(chart_figure, findings.charts))),
        Section("Assumptions", items=findings.assumptions),
    )
    article = Article("findings", "", findings.title, "", sections, "")
    articles = [article, *(comparison(results, _anchor(number)) for number, results in enumerate(runs))]
    return Report(findings.title, _with_unique_names(articles))


def sweep_report(cells: Sequence[SweepCell]) -> Report:
    """Return the report of a sweep: utilisation over the seeds of every cell that has a finished run.

    Raises:
        ValueError: No run has finished.
    """
    figure = sweep_bars(cells)
    has_settings, has_failed = any(cell.settings for cell in cells), any(cell.failed for cell in cells)
    columns = ["Scenario", *(["Settings"] if has_settings else []), "Policy", "Seeds"]
    columns += [
        *(["Failed"] if has_failed else []),
        "Mean",
        "Deviation",
        "p5",
        "p50",
        "p95",
        "Limit",
        "Worst slowdown",
        "Starved jobs",
    ]
    rows = []
    for cell in cells:
        if (spread := cell.gpu_utilisation) is not None:
            words = [cell.scenario, *([format_settings(cell.settings)] if has_settings else []), cell.policy]
            words += [count(cell.finished), *([count(cell.failed)] if has_failed else [])]
            words += map(percent, (spread.mean, spread.deviation, spread.p5, spread.p50, spread.p95))
            words.append("\N{EN DASH}" if cell.limit is None else percent(cell.limit))
            words += [slowdown(cell.worst_speed), count(cell.starved_jobs)]
            rows.append(tuple(map(Cell, words)))
    table = Table("GPU utilisation over seeds", tuple(columns), tuple(rows))
    title = "Sweep: GPU utilisation over seeds"
    explanation = "Limit: the mean of the smaller of ideal and fluid bound."
    section = Section("GPU utilisation", explanation, (table,), (figure,))
    return Report(title, (Article("sweep", "", title, "", (section,), ""),))


def _with_unique_names(articles: Sequence[Article]) -> tuple[Article, ...]:
    """Number the figures of the page that would otherwise have the same name."""
    figures = (figure for article in articles for part in article.sections for figure in part.figures)
    unique = iter(with_unique_names(figures))
    return tuple(replace(article, sections=tuple(_take(article.sections, unique))) for article in articles)


def _take(sections: Iterable[Section], figures: Iterator[ReportFigure]) -> Iterator[Section]:
    for part in sections:
        yield replace(part, figures=tuple(next(figures) for _ in part.figures))


def _findings_table(table: FindingsTable) -> Table:
    rows = tuple(tuple(Cell(words) for words in row) for row in table.rows)
    return Table(table.title, table.columns, rows)


def _overview(comparisons: Comparisons) -> Table:
    columns = ("Scenario", *(result.policy for result in comparisons[0]), "ideal", "fluid bound")
    rows = []
    for number, results in enumerate(comparisons):
        limits = (results[-1].ideal_gpu_utilisation, results[-1].fluid_bound_gpu_utilisation)
        shares = (*(result.gpu_utilisation for result in results), *limits)
        rows.append((Cell(results[0].scenario, target=_anchor(number)), *(Cell(percent(share)) for share in shares)))
    return Table("GPU utilisation of every scenario under every policy", columns, tuple(rows))


def _anchor(number: int) -> str:
    return f"scenario-{number}"
