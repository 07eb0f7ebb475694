"""What clients ask for of results, so that they can ask for it beforehand, together with the call.

The answer then comes as soon as there is one. Otherwise the question would reach the server only when the program
waits, and take the way to the hosts and back once more.
"""

from enum import IntEnum

from runtime.arrays import ArraySpec

_MOST_BYTES = 1 << 16
"""Data that may come for nothing are no larger."""


class Asked(IntEnum):
    """What was asked for of an array."""

    NOTHING = 0
    BEING_THERE = 1
    DATA = 2


class Habit:
    """What was asked for ``last`` of a result of a program: nothing, if that array was released without."""

    __slots__ = ("last",)

    def __init__(self) -> None:
        self.last = Asked.NOTHING

    def foreseen(self, spec: ArraySpec) -> Asked:
        """Return what to ask for beforehand of an array of a known size."""
        if not spec.is_bounded or (self.last is Asked.DATA and spec.size_bytes > _MOST_BYTES):
            return Asked.NOTHING
        return self.last
