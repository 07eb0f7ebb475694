"""The one place that says how machine code is made."""

from collections.abc import Callable
from typing import Any, ParamSpec, TypeVar, cast

import numba

_Parameters = ParamSpec("_Parameters")
_Result = TypeVar("_Result")

OPTIONS: dict[str, Any] = {
    "nogil": True,
    # The engine allocates nothing, so arrays need no reference counts: without them it is four times as fast.
    "_nrt": False,
    # Dividing by zero raises nothing; the engine and compiled programs do not divide by what may be 0.
    "error_model": "numpy",
}


def compiled(function: Callable[_Parameters, _Result]) -> Callable[_Parameters, _Result]:
    """Compile a function to machine code at its first call; it runs without the interpreter and its lock."""
    return cast(Callable[_Parameters, _Result], numba.njit(forceinline=True, **OPTIONS)(function))
