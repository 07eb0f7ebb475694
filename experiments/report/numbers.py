"""The formats of numbers in figures and tables."""

from topologies.quantities import count as count
from topologies.quantities import percent as percent
from topologies.quantities import quantity as quantity

_MINUS = "\N{MINUS SIGN}"
_SPACE = "\N{NO-BREAK SPACE}"
_NOTHING = "\N{EN DASH}"


def points(difference: float) -> str:
    """Return a difference of two fractions in percentage points, with its sign."""
    return f"{signed(difference * 100, 1)} points"


def seconds(time_s: float | None) -> str:
    """Return a time with milliseconds, one below 0.1 s to three digits in ms or µs, or a dash for None."""
    if time_s is None:
        return _NOTHING
    if not time_s or abs(time_s) >= 0.1:
        return f"{time_s:.3f}{_SPACE}s"
    if abs(time_s) >= 0.9995e-3:  # less is rounded to below 1000 µs
        return f"{time_s * 1e3:.3g}{_SPACE}ms"
    return f"{time_s * 1e6:.3g}{_SPACE}\N{MICRO SIGN}s"


def change(value: float | None, reference: float | None) -> str:
    """Return the change of a value from a reference in percent, or a dash where either is missing or 0."""
    if value is None or not reference:
        return _NOTHING
    return f"{signed((value / reference - 1) * 100, 1)}{_SPACE}%"


def signed(value: float, decimals: int) -> str:
    """Return a number with its sign; one that rounds to 0 has none."""
    rounded = round(value, decimals)
    sign = "+" if rounded > 0 else _MINUS if rounded < 0 else ""
    return f"{sign}{abs(rounded):.{decimals}f}"


def slowdown(speed: float | None) -> str:
    """Return the slowdown of a job of this speed; one that is starved has none."""
    if speed is None:
        return "\N{EN DASH}"
    return f"{1 / speed:.2f}" if speed else "starved"


def counted(number: int, one: str, many: str = "") -> str:
    """Return a number of things in words: ``1 job``, ``2 jobs``."""
    return f"{number:,} {one if number == 1 else many or one + 's'}"
