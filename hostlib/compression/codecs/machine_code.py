"""How the codecs' loops become machine code: numba compiles them when their module is imported, never in a step.

They release the GIL, so that a thread can encode while others compute. They run on one core: the others compute
gradients. numba keeps the machine code in files, so that only the first import on a machine compiles.
"""

from collections.abc import Callable
from typing import Any, ParamSpec, TypeVar, cast

import numba
from llvmlite import ir
from numba.core import types
from numba.extending import intrinsic

_Parameters = ParamSpec("_Parameters")
_Result = TypeVar("_Result")
_Function = Callable[_Parameters, _Result]


def compiled(signature: str) -> Callable[[_Function[_Parameters, _Result]], _Function[_Parameters, _Result]]:
    """Compile a function of arrays and numbers for one signature, as numba writes it.

    A call with anything else raises TypeError. Division by zero follows NumPy: it gives an infinity or NaN.
    """

    def decorate(function: _Function[_Parameters, _Result]) -> _Function[_Parameters, _Result]:
        compile_it: Any = numba.njit(signature, nogil=True, cache=True, error_model="numpy")
        return cast(Callable[_Parameters, _Result], compile_it(function))

    return decorate


def inlined(function: Callable[_Parameters, _Result]) -> Callable[_Parameters, _Result]:
    """Compile a function into those of the same file that call it: cached code is renewed when its own file changes."""
    return cast(Callable[_Parameters, _Result], numba.njit(forceinline=True, nogil=True, error_model="numpy")(function))


def _trailing_zeros(_: Any, __: Any) -> Any:
    """Return the numba signature and the LLVM code generator of ``trailing_zeros``."""

    def code(_: Any, builder: Any, ___: Any, arguments: Any) -> Any:
        return builder.cttz(arguments[0], ir.Constant(ir.IntType(1), 0))

    return types.uint64(types.uint64), code


trailing_zeros: Callable[[Any], Any] = cast(Any, intrinsic(_trailing_zeros))
"""The number of zero bits below the lowest one of an unsigned 64-bit word, for compiled functions; 64 for zero."""
