"""Checks of what callers give. Each returns the value as it is used, or raises ValueError, naming the field.

A value of a wrong type is a ValueError as well: callers have one error to expect. Whatever is an integer to Python is
one here, such as NumPy's.
"""

import math
import operator
from collections.abc import Iterable
from numbers import Real
from typing import TypeVar

MAX_NAME_LENGTH = 256
MAX_32 = (1 << 32) - 1
MAX_PORT = (1 << 16) - 1
MAX_SIZE_BYTES = 1 << 63
MAX_ITERATION = (1 << 63) - 1

_SHOWN = 100

_Item = TypeVar("_Item")


def integer(field: str, value: object, least: int, most: int) -> int:
    """Check an integer of a range, both ends included."""
    try:
        number = operator.index(value)  # type: ignore[arg-type]
    except TypeError:
        raise ValueError(f"{field}: expected an integer, got {shown(value)}") from None
    if not least <= number <= most:
        raise ValueError(f"{field}: must lie between {least} and {most}, not {shown(number)}")
    return number


def number(field: str, value: object, most: float = math.inf) -> float:
    """Check a finite number from 0 to ``most``."""
    try:
        checked = float(value) if isinstance(value, Real) else math.nan
    except OverflowError:
        checked = math.inf
    if not 0 <= checked <= most or checked == math.inf:
        upto = "finite and not negative" if most == math.inf else f"between 0 and {most:g}"
        raise ValueError(f"{field}: expected a number that is {upto}, got {shown(value)}")
    return checked


def name(field: str, value: object) -> str:
    """Check a name: 1 to 256 printable characters without a slash."""
    if not isinstance(value, str):
        raise ValueError(f"{field}: expected text, got {shown(value)}")
    if not 0 < len(value) <= MAX_NAME_LENGTH or not value.isprintable() or "/" in value:
        raise ValueError(
            f"{field}: expected 1 to {MAX_NAME_LENGTH} printable characters without a slash, got {shown(value)}"
        )
    return value


def instance(field: str, value: object, kind: type[_Item]) -> _Item:
    """Check that a value is of a class."""
    if not isinstance(value, kind):
        raise ValueError(f"{field}: expected {_article(kind)}, got {shown(value)}")
    return value


def items(field: str, values: object, kind: type[_Item]) -> tuple[_Item, ...]:
    """Check several items, all of a class."""
    if isinstance(values, str | bytes | kind) or not isinstance(values, Iterable):
        raise ValueError(f"{field}: expected a tuple, each item {_article(kind)}, got {shown(values)}")
    checked = tuple(values)
    for position, item in enumerate(checked):
        if not isinstance(item, kind):
            instance(f"{field}[{position}]", item, kind)
    return checked


def names(field: str, values: object) -> tuple[str, ...]:
    """Check several names."""
    return tuple(name(f"{field}[{position}]", value) for position, value in enumerate(items(field, values, str)))


def shown(value: object) -> str:
    """Return the beginning of a value's representation, for messages."""
    try:
        text = repr(value)
    except Exception:
        text = f"a value of type {type(value).__name__}"
    return text if len(text) <= _SHOWN else f"{text[:_SHOWN]}..."


def _article(kind: type) -> str:
    if kind is str:
        return "text"
    return f"{'an' if kind.__name__[0] in 'AEIOU' else 'a'} {kind.__name__}"
