"""The keys of a configuration: which of them a running controller can change, and which differ between two files."""

from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from pydantic import BaseModel

from controller.config import ControllerConfig


class Change(StrEnum):
    """What a running controller does about a key that has another value."""

    AT_ONCE = "at once"
    """It uses the new value from the next Plan or call on."""
    NEW_FABRIC = "with a new fabric"
    """It goes over to the new fabric, in steps."""


CHANGES: dict[str, Change] = {
    "policy": Change.AT_ONCE,
    "num_levels": Change.AT_ONCE,
    "seed": Change.AT_ONCE,
    "damping": Change.AT_ONCE,
    "quotas": Change.AT_ONCE,
    "tenants": Change.AT_ONCE,
    "policy_time_limit_s": Change.AT_ONCE,
    "profiling": Change.AT_ONCE,
    "record": Change.AT_ONCE,
    "log": Change.AT_ONCE,
    "topology": Change.NEW_FABRIC,
    "switches": Change.NEW_FABRIC,
}
"""The keys that can change while the controller runs. All others need a restart."""

REFUSED_PARTS = {"log": ("format",)}
"""Parts of these keys that cannot change all the same."""


@dataclass(frozen=True, slots=True)
class KeyChanges:
    """The keys that differ between two configurations, by what a running controller does about them.

    ``at_once`` has a line for each, in words. ``refused`` are those that need a restart.
    """

    at_once: tuple[str, ...]
    has_new_fabric: bool
    refused: tuple[str, ...]

    @property
    def is_empty(self) -> bool:
        """Whether nothing differs."""
        return not (self.at_once or self.has_new_fabric or self.refused)


def key_changes(before: ControllerConfig, after: ControllerConfig) -> KeyChanges:
    """Compare two configurations, key by key."""
    differing = [key for key in ControllerConfig.model_fields if getattr(before, key) != getattr(after, key)]
    at_once = [key for key in differing if CHANGES.get(key) is Change.AT_ONCE]
    return KeyChanges(
        tuple(line for key in at_once for line in _lines(key, getattr(before, key), getattr(after, key))),
        any(CHANGES.get(key) is Change.NEW_FABRIC for key in differing),
        tuple(key for key in differing if key not in CHANGES)
        + tuple(
            f"{key}.{part}"
            for key, parts in REFUSED_PARTS.items()
            for part in parts
            if getattr(getattr(before, key), part) != getattr(getattr(after, key), part)
        ),
    )


def _lines(key: str, before: Any, after: Any) -> Iterator[str]:
    """Describe the change of a value: key by key where it has keys itself."""
    parts, others = _parts(before), _parts(after)
    if parts is None or others is None:
        yield f"{key}: {_shown(before)}, now {_shown(after)}"
        return
    for name in dict.fromkeys((*parts, *others)):
        if parts.get(name) != others.get(name):
            yield from _lines(f"{key}.{name}", parts.get(name), others.get(name))


def _parts(value: Any) -> dict[str, Any] | None:
    if isinstance(value, BaseModel):
        return {name: getattr(value, name) for name in type(value).model_fields}
    return dict(value) if isinstance(value, dict) else None


def _shown(value: Any) -> str:
    if value is None:
        return "nothing"
    parts = _parts(value)
    if parts is None:
        return str(value)
    return ", ".join(f"{name} {_shown(part)}" for name, part in parts.items() if part is not None) or "nothing"
