"""How the loops of the allocators become machine code.

Policies do without: only what a simulator calls at every event is compiled.
"""

from collections.abc import Callable
from typing import ParamSpec, TypeVar, cast

import numba

_Parameters = ParamSpec("_Parameters")
_Result = TypeVar("_Result")


def compiled(function: Callable[_Parameters, _Result]) -> Callable[_Parameters, _Result]:
    """Compile a function at its first call and keep the machine code on disk; dividing by zero raises nothing."""
    compile_function = numba.njit(cache=True, nogil=True, error_model="numpy")
    return cast(Callable[_Parameters, _Result], compile_function(function))
