"""Loops over arrays, interpreted where they are short and compiled where they are long, with the same result.

Importing the compiler takes longer than any decision for a small fabric, so it is imported when a loop is first worth
it, or where a process goes on deciding. A loop is written so that both ways agree to the bit: no reduction whose order
is left open, no fused operations.
"""

from collections.abc import Callable
from functools import cached_property
from typing import ClassVar, Generic, ParamSpec, TypeVar

_P = ParamSpec("_P")
_R = TypeVar("_R")

LONG_STEPS = 100_000


class Loop(Generic[_P, _R]):
    """A function of arrays and numbers that numba can compile; ``interpreted`` is the function as it is written."""

    def __init__(self, interpreted: Callable[_P, _R]) -> None:
        self.interpreted = interpreted

    _is_compiled_however_short: ClassVar[bool] = False

    @classmethod
    def compile_all(cls) -> None:
        """From now on compile every loop, however short: for a process that goes on deciding."""
        cls._is_compiled_however_short = True

    def of(self, steps: int) -> Callable[_P, _R]:
        """The faster way for a call that reads about so many elements of arrays."""
        return self.compiled if steps >= LONG_STEPS or self._is_compiled_however_short else self.interpreted

    @cached_property
    def compiled(self) -> Callable[_P, _R]:
        """The function in machine code."""
        from policies.machine_code import compiled

        return compiled(self.interpreted)
