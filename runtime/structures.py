"""Tuples, lists and dicts of arrays as flat lists, and back."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Literal


@dataclass(frozen=True, slots=True)
class Structure:
    """How arrays are nested: an array, or parts in a tuple, list or dict with ``keys``."""

    kind: Literal["array", "tuple", "list", "dict"]
    parts: tuple["Structure", ...] = ()
    keys: tuple[Any, ...] = ()


ARRAY = Structure("array")


def flatten(nested: Any) -> tuple[list[Any], Structure]:
    """Return the arrays of nested tuples, lists and dicts in order, and how they were nested."""
    leaves: list[Any] = []
    return leaves, _flatten(nested, leaves.append)


def unflatten(structure: Structure, leaves: Sequence[Any]) -> Any:
    """Nest arrays again."""
    return _unflatten(structure, iter(leaves))


def _flatten(nested: Any, add: Callable[[Any], None]) -> Structure:
    match nested:
        case tuple():
            return Structure("tuple", tuple(_flatten(each, add) for each in nested))
        case list():
            return Structure("list", tuple(_flatten(each, add) for each in nested))
        case dict():
            return Structure("dict", tuple(_flatten(each, add) for each in nested.values()), tuple(nested))
    add(nested)
    return ARRAY


def _unflatten(structure: Structure, leaves: Iterator[Any]) -> Any:
    if structure.kind == "array":
        return next(leaves)
    parts = [_unflatten(part, leaves) for part in structure.parts]
    match structure.kind:
        case "tuple":
            return tuple(parts)
        case "dict":
            return dict(zip(structure.keys, parts, strict=True))
    return parts
