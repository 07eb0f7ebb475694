"""Distributions over cases, as curves of the share of cases that lie below, with points of what was published."""

from collections.abc import Sequence
from dataclasses import dataclass

from experiments.report.svg import Markup, element, joined, line, picture, text

_WIDTH = 1000.0
_HEIGHT = 300.0
_LEFT = 56.0
_RIGHT = 700.0
_KEY = 740.0
_TOP = 12.0
_KEY_ROW = 24.0
_MOST_POINTS = 400


@dataclass(frozen=True, slots=True)
class Distribution:
    """Values from 0 to 1, one per case; ``published`` are pairs of a value and the share of cases up to it.

    ``colour`` is one of five, from 0.
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


def distribution_curves(chart: DistributionChart) -> Markup:
    """A curve per distribution; published points are hollow."""
    bottom = _TOP + _HEIGHT
    scale = [
        joined(
            (
                line(_x(tenth / 10), _TOP, _x(tenth / 10), bottom, "rule"),
                text(_x(tenth / 10), bottom + 17, f"{tenth * 10} %", "tick", "middle"),
                line(_LEFT, _y(tenth / 10), _RIGHT, _y(tenth / 10), "rule"),
                text(_LEFT - 8, _y(tenth / 10) + 4, f"{tenth * 10} %", "tick", "end"),
            )
        )
        for tenth in range(0, 11, 2)
    ]
    means = (f"{each.label} {sum(each.values) / len(each.values):.1%}" for each in chart.distributions)
    return picture(
        _WIDTH,
        bottom + 40,
        f"{chart.title}: mean {chart.quantity} " + ", ".join(means),
        *scale,
        text((_LEFT + _RIGHT) / 2, bottom + 36, chart.quantity, "note", "middle"),
        *(_curve(each, number) for number, each in enumerate(chart.distributions)),
    )


def _curve(distribution: Distribution, number: int) -> Markup:
    """From (0, 0): the share of cases up to each value; beside it its name."""
    colour = f"curve curve-{distribution.colour}"
    values = sorted(distribution.values)
    step = max(len(values) // _MOST_POINTS, 1)
    places = sorted({*range(0, len(values), step), len(values) - 1})
    points = [(0.0, 0.0), *((values[place], (place + 1) / len(values)) for place in places)]
    row = _TOP + 18 + _KEY_ROW * number
    return joined(
        (
            element(
                "polyline",
                points=" ".join(f"{_x(value):.1f},{_y(share):.1f}" for value, share in _stairs(points)),
                class_=colour,
            ),
            *(
                element("circle", cx=_x(value), cy=_y(share), r=5, class_=colour)
                for value, share in distribution.published
            ),
            line(_KEY, row - 4, _KEY + 26, row - 4, colour),
            text(_KEY + 36, row, distribution.label, "label"),
        )
    )


def _stairs(points: Sequence[tuple[float, float]]) -> list[tuple[float, float]]:
    """Level until the next value, and then up; the last goes on to the end of the scale."""
    found = [points[0]]
    for value, share in points[1:]:
        found += [(value, found[-1][1]), (value, share)]
    return [*found, (1.0, found[-1][1])]


def _x(value: float) -> float:
    return _LEFT + (_RIGHT - _LEFT) * min(max(value, 0.0), 1.0)


def _y(share: float) -> float:
    return _TOP + _HEIGHT * (1 - share)
