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
_MOST_DEPTH = 50


def flatten(nested: Any) -> tuple[list[Any], Structure]:
    """Return the arrays of nested tuples, lists and dicts in order, and how they were nested."""
    leaves: list[Any] = []
    return leaves, _flatten(nested, leaves.append)


def unflatten(structure: Structure, leaves: Sequence[Any]) -> Any:
    """Nest arrays again."""
    return _unflatten(structure, iter(leaves))


def to_plain(structure: Structure) -> object:
    """Return a structure as JSON has it. Raises TypeError for keys that are neither text nor whole numbers."""
    for key in structure.keys:
        if type(key) not in (str, int):
            raise TypeError(f"keys: expected text or whole numbers, got {key!r:.50}")
    return [structure.kind, [to_plain(part) for part in structure.parts], list(structure.keys)]


def from_plain(plain: object, depth: int = _MOST_DEPTH) -> Structure:
    """Return the structure that ``to_plain`` made plain. Raises ValueError for anything else."""
    match plain:
        case ["array", [], []]:
            return ARRAY
        case [("tuple" | "list") as kind, [*parts], []] if depth:
            return Structure(kind, tuple(from_plain(part, depth - 1) for part in parts))
        case ["dict", [*parts], [*keys]] if depth and len(parts) == len(keys) and {*map(type, keys)} <= {str, int}:
            return Structure("dict", tuple(from_plain(part, depth - 1) for part in parts), tuple(keys))
    raise ValueError("expected the structure of nested arrays")


def count_arrays(structure: Structure) -> int:
    """Return how many arrays are nested so."""
    return 1 if structure.kind == "array" else sum(map(count_arrays, structure.parts))


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
