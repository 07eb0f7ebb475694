"""Compare what a switch holds with what it was given, while more may have been written to it. Pure functions."""

from dataclasses import dataclass

from controller.southbound.p4runtime.difference import State
from controller.southbound.p4runtime.entries import holds_same


@dataclass(frozen=True, slots=True)
class Drift:
    """The numbers of entries of the controller's tables that somebody else deleted, changed and added."""

    missing: int
    changed: int
    foreign: int

    @property
    def total(self) -> int:
        """All of them."""
        return self.missing + self.changed + self.foreign

    def __str__(self) -> str:
        return f"{self.missing:,} missing, {self.changed:,} changed and {self.foreign:,} foreign"


def drift_between(found: State, expected: State) -> Drift | None:
    """Return the drift from ``expected`` to ``found``, None where there is none."""
    missing = sum(key not in found for key in expected)
    foreign = sum(key not in expected for key in found)
    changed = sum(
        found[key] is not entity and not holds_same(found[key], entity)
        for key, entity in expected.items()
        if key in found
    )
    drift = Drift(missing, changed, foreign)
    return drift if drift.total else None


def may_have_drifted(found: State, before: State, now: State) -> bool:
    """Tell whether ``found`` differs from what was expected before and after it was read.

    An entity that was written meanwhile may be found in either state. Entities that do the same must be identical.
    """
    return any(found.get(key) is not entity for key, entity in before.items() if now.get(key) is entity) or any(
        key not in before and key not in now for key in found
    )
