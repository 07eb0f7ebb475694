"""Keys of a scenario that a sweep sets, each an axis of its grid: ``reaction_delay_s=0,1,10``."""

import copy
import json
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import product
from typing import Any, Self

from workloads.loading import parse_values

Settings = Mapping[str, Any]
"""What one run sets: values by key."""

_KEY = re.compile(r"[^\s.\[\]=]+(?:\[\d+\])*(?:\.[^\s.\[\]=]+(?:\[\d+\])*)*")
_STEP = re.compile(r"\[(\d+)\]|[^.\[\]]+")
_OPTIONS = {"policy": "--policy", "seed": "--seeds"}


@dataclass(frozen=True, slots=True)
class Axis:
    """A key, written as in the errors of a scenario (``jobs[0].duration_s``), and its values."""

    key: str
    values: tuple[Any, ...]

    @classmethod
    def parse(cls, text: str) -> Self:
        """Of ``KEY=VALUE,VALUE,…``, values as YAML has them. Raises ValueError for anything else."""
        key, equals, values = text.partition("=")
        if not equals or not _KEY.fullmatch(key):
            raise ValueError(f"expected KEY=VALUE,VALUE,... with a key of a scenario, got {text!r}")
        if key in _OPTIONS:
            raise ValueError(f"{key}: expected {_OPTIONS[key]} instead")
        parsed = parse_values(values)
        if not parsed:
            raise ValueError(f"{key}: expected at least one value")
        written = [json.dumps(value, sort_keys=True, default=str) for value in parsed]
        if repeated := next((value for value in written if written.count(value) > 1), None):
            raise ValueError(f"{key}: expected every value once, {repeated} is there twice")
        return cls(key, tuple(parsed))


def combinations(axes: Iterable[Axis]) -> Iterator[Settings]:
    """All settings of a grid, the last axis fastest. Raises ValueError for an axis that stands twice."""
    axes = tuple(axes)
    keys = [axis.key for axis in axes]
    if repeated := next((key for key in keys if keys.count(key) > 1), None):
        raise ValueError(f"{repeated}: expected once, with all its values")
    for values in product(*(axis.values for axis in axes)):
        yield dict(zip(keys, values, strict=True))


def with_settings(document: Any, settings: Settings) -> Any:
    """The document of a scenario with these keys set.

    Raises ValueError where there is no such place; whether a key means anything the scenario's own checks tell.
    """
    document = copy.deepcopy(document)
    for key, value in settings.items():
        *way, last = [int(step[1]) if step[1] else step[0] for step in _STEP.finditer(key)]
        here = document
        for step in way:
            _require_place(here, step, key)
            if isinstance(here, dict):
                here.setdefault(step, {})
            here = here[step]
        _require_place(here, last, key)
        here[last] = value
    return document


def described(settings: Settings) -> str:
    """The settings in a line, empty where there are none."""
    return ", ".join(f"{key}={shown(value)}" for key, value in settings.items())


def shown(value: Any) -> str:
    """A value as people write it."""
    return value if isinstance(value, str) else json.dumps(value)


def _require_place(here: Any, step: str | int, key: str) -> None:
    if isinstance(step, int) and not (isinstance(here, list) and step < len(here)):
        raise ValueError(f"{key}: there is no [{step}]")
    if isinstance(step, str) and not isinstance(here, dict):
        raise ValueError(f"{key}: {step!r} would have to stand in a mapping")
