"""What an evaluation found, for people: tables, bars and assumptions, and the page of them."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from experiments.report.comparison import comparison
from experiments.report.distributions import DistributionChart, distribution_curves
from experiments.report.page import document
from experiments.report.panels import PanelChart, draw_panels
from experiments.report.svg import Markup, element, joined, picture, rectangle, text
from experiments.scenarios.results import RunResult

_WIDTH = 1000.0
_LABELS = 260.0
_BARS_WIDTH = 620.0
_ROW = 30.0
_BAR = 18.0


@dataclass(frozen=True, slots=True)
class FindingsTable:
    """A table whose cells are ready to read; the first column names the rows."""

    title: str
    columns: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]


@dataclass(frozen=True, slots=True)
class Bar:
    """A value as it is read, and what part of the scale it takes, 0 to 1; ``published`` ones have another colour."""

    label: str
    value: str
    share: float
    published: bool = False


@dataclass(frozen=True, slots=True)
class BarChart:
    """Bars on one scale."""

    title: str
    bars: tuple[Bar, ...]


@dataclass(frozen=True, slots=True)
class Findings:
    """All that an evaluation has to say."""

    title: str
    tables: tuple[FindingsTable, ...]
    charts: tuple[BarChart | DistributionChart | PanelChart, ...]
    assumptions: tuple[str, ...]


def write_findings(findings: Findings, runs: Sequence[Sequence[RunResult]], path: Path) -> None:
    """Write the page, followed by pictures of runs: those of each scenario, the policy to compare with first.

    Raises OSError.
    """
    path.write_text(findings_page(findings, runs), encoding="utf-8")


def findings_page(findings: Findings, runs: Sequence[Sequence[RunResult]] = ()) -> str:
    """The whole page."""
    return document(
        findings.title,
        element("header", element("h1", findings.title)),
        _section("Tables", map(_table, findings.tables)),
        _section("Pictures", map(_chart, findings.charts)),
        _section("Assumptions", [element("ul", *(element("li", words) for words in findings.assumptions))]),
        *(comparison(results, f"scenario-{number}") for number, results in enumerate(runs)),
    )


def _section(title: str, content: Iterable[Markup]) -> Markup:
    return element("section", element("h2", title), *content)


def _table(table: FindingsTable) -> Markup:
    head = element("thead", element("tr", *(element("th", column) for column in table.columns)))
    rows = (element("tr", *(element("td", cell) for cell in row)) for row in table.rows)
    return joined(
        (element("h3", table.title), element("figure", element("table", head, element("tbody", *rows)))),
    )


def _chart(chart: BarChart | DistributionChart | PanelChart) -> Markup:
    match chart:
        case BarChart():
            drawn = _bars(chart)
        case DistributionChart():
            drawn = distribution_curves(chart)
        case PanelChart():
            drawn = draw_panels(chart)
    return joined((element("h3", chart.title), element("figure", drawn)))


def _bars(chart: BarChart) -> Markup:
    description = f"{chart.title}: " + ", ".join(f"{bar.label} {bar.value}" for bar in chart.bars)
    bars = (_bar(bar, _ROW * number) for number, bar in enumerate(chart.bars))
    return picture(_WIDTH, _ROW * len(chart.bars), description, *bars)


def _bar(bar: Bar, row: float) -> Markup:
    top = row + (_ROW - _BAR) / 2
    share = min(max(bar.share, 0.0), 1.0)
    return joined(
        (
            text(0, top + 14, bar.label, "label"),
            rectangle(_LABELS, top, _BARS_WIDTH, _BAR, "track"),
            rectangle(_LABELS, top, _BARS_WIDTH * share, _BAR, "level-3" if bar.published else "compute"),
            text(_LABELS + _BARS_WIDTH + 18, top + 14, bar.value, "label"),
        )
    )
