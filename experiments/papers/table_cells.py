"""Table cells and bars that several evaluations share."""

from experiments.report.findings import Bar
from experiments.report.numbers import percent, signed

DASH = "\N{EN DASH}"
"""Stands for a value that is missing."""


def percent_or_dash(share: float | None, decimals: int = 1) -> str:
    """Return a fraction as percent, or a dash for None."""
    return DASH if share is None else percent(share, decimals)


def points_or_dash(difference: float | None) -> str:
    """Return the difference of two fractions in percentage points with its sign, or a dash for None."""
    return DASH if difference is None else signed(difference * 100, 1)


def with_gain(without: float | None, scheduled: float | None) -> tuple[str, str, str]:
    """Return two utilisations and the gain in percentage points, with dashes for what is missing."""
    gain = None if without is None or scheduled is None else scheduled - without
    return percent_or_dash(without), percent_or_dash(scheduled), points_or_dash(gain)


def share_bar(label: str, share: float, *, published: bool = False, deviation: float | None = None) -> Bar:
    """Return a bar for a fraction, on a scale from 0 to 1, with a standard deviation where there is one."""
    return Bar(label, percent(share), share, published, deviation)
