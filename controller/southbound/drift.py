"""Compare what a switch holds with what it was given, while more may have been written to it. Pure functions."""

from collections.abc import Callable
from dataclasses import dataclass

from controller.southbound.states import EntryT, State


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


def drift_between(
    found: State[EntryT], expected: State[EntryT], holds_same: Callable[[EntryT, EntryT], bool]
) -> Drift | None:
    """Return the drift from ``expected`` to ``found``, None where there is none.

    ``holds_same`` tells whether two entries with the same key do the same.
    """
    missing = sum(key not in found for key in expected)
    foreign = sum(key not in expected for key in found)
    changed = sum(
        found[key] is not entry and not holds_same(found[key], entry) for key, entry in expected.items() if key in found
    )
    drift = Drift(missing, changed, foreign)
    return drift if drift.total else None


def may_have_drifted(found: State[EntryT], before: State[EntryT], now: State[EntryT]) -> bool:
    """Tell whether ``found`` differs from what was expected before and after it was read.

    An entry that was written meanwhile may be found in either state. Entries that do the same must be identical.
    """
    return any(found.get(key) is not entry for key, entry in before.items() if now.get(key) is entry) or any(
        key not in before and key not in now for key in found
    )
