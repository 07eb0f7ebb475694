"""Numbers as people read them, in sentences, tables and figures."""

_SPACE = "\N{NO-BREAK SPACE}"
_NOTHING = "\N{EN DASH}"
_PREFIXES = ("", "k", "M", "G", "T", "P", "E")


def percent(fraction: float, decimals: int = 1) -> str:
    """Return a fraction as percent."""
    return f"{fraction * 100:.{decimals}f}{_SPACE}%"


def quantity(value: float | None) -> str:
    """Return a number to three digits, with a unit prefix from a thousand on, or a dash for None."""
    if value is None:
        return _NOTHING
    magnitude = 0
    while abs(value) >= 999.5 and magnitude + 1 < len(_PREFIXES):
        value, magnitude = value / 1000, magnitude + 1
    prefix = _PREFIXES[magnitude]
    return f"{value:.3g}{_SPACE}{prefix}" if prefix else f"{value:.3g}"


def count(number: int | None) -> str:
    """Return a whole number, or a dash for None."""
    return _NOTHING if number is None else f"{number:,}"
