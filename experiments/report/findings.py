"""Plain data of an evaluation's findings: tables, charts and assumptions. Nothing here draws."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    pass


@dataclass(frozen=True, slots=True)
class FindingsTable:
    """A table whose cells are ready to read; the first column names the rows."""

    title: str
    columns: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]


@dataclass(frozen=True, slots=True)
class Bar:
    """A value as text, and as a number on the scale of its chart.

    ``published`` marks a value from a paper. ``deviation`` is a standard deviation on the same scale as ``share``; it
    becomes an error bar.
    """

    label: str
    value: str
    share: float
    published: bool = False
    deviation: float | None = None


@dataclass(frozen=True, slots=True)
class BarChart:
    """Bars on one scale from 0."""

    title: str
    bars: tuple[Bar, ...]


@dataclass(frozen=True, slots=True)
class Distribution:
    """Values from 0 to 1, one per case.

    ``published`` holds pairs of a value and the share of cases up to it. ``colour`` is an index into the series colours
    of the report.
    """

    label: str
    colour: int
    values: tuple[float, ...]
    published: tuple[tuple[float, float], ...] = ()


@dataclass(frozen=True, slots=True)
class DistributionChart:
    """Distributions of ``quantity`` on one scale."""

    title: str
    quantity: str
    distributions: tuple[Distribution, ...]


@dataclass(frozen=True, slots=True)
class Panel:
    """Two series over equal intervals. Each value is a part of the scale, 0 to 1; ``part`` is a part of ``whole``."""

    label: str
    note: str
    whole: Sequence[float]
    part: Sequence[float]


@dataclass(frozen=True, slots=True)
class PanelChart:
    """Panels over the same ``days``; ``scale`` says in words what the top of the scale is."""

    title: str
    scale: str
    days: float
    panels: tuple[Panel, ...]


@dataclass(frozen=True, slots=True)
class Line:
    """Points of one series, by their x; ``colour`` is an index into the series colours of the report."""

    label: str
    colour: int
    points: tuple[tuple[float, float], ...]


@dataclass(frozen=True, slots=True)
class LineChart:
    """Lines on common axes, each with a name and its unit; x is on a logarithmic scale where ``is_logarithmic``."""

    title: str
    x_name: str
    y_name: str
    lines: tuple[Line, ...]
    is_logarithmic: bool = False


Chart = BarChart | DistributionChart | LineChart | PanelChart
"""Any chart of an evaluation."""


@dataclass(frozen=True, slots=True)
class Findings:
    """Everything that an evaluation reports."""

    title: str
    tables: tuple[FindingsTable, ...]
    charts: tuple[Chart, ...]
    assumptions: tuple[str, ...]
