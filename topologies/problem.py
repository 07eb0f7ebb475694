"""A problem of a scenario's document, with its place."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

Location = tuple[str | int, ...]
"""Keys and positions from the top of the document."""


@dataclass(frozen=True, slots=True)
class Problem:
    """Something wrong at a place of the document."""

    location: Location
    text: str

    def __str__(self) -> str:
        path = "".join(f"[{step}]" if isinstance(step, int) else f".{step}" for step in self.location).lstrip(".")
        return f"{path}: {self.text}" if path else self.text


def as_mapping(value: object) -> Mapping[str, Any]:
    """The value where it is a mapping, else an empty one."""
    return value if isinstance(value, Mapping) else {}


def as_list(value: object) -> Sequence[Any]:
    """The value where it is a list, else an empty one."""
    return value if isinstance(value, Sequence) and not isinstance(value, str) else ()
