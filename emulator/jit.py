"""The one place that says how machine code is made."""

from collections.abc import Callable
from typing import Any, ParamSpec, TypeVar, cast

import numba
from llvmlite import ir
from numba.core import types
from numba.extending import intrinsic
from numpy.typing import NDArray

_Parameters = ParamSpec("_Parameters")
_Result = TypeVar("_Result")

OPTIONS: dict[str, Any] = {
    "nogil": True,
    # The engine allocates nothing, so arrays need no reference counts: without them it is four times as fast.
    "_nrt": False,
    # Dividing by zero raises nothing; the engine and compiled programs do not divide by what may be 0.
    "error_model": "numpy",
    "no_cfunc_wrapper": True,
}

INNER_OPTIONS: dict[str, Any] = OPTIONS | {"no_cpython_wrapper": True}
"""For what only machine code calls: a third of the time that compiling takes goes into what lets Python call it."""


def compiled(function: Callable[_Parameters, _Result]) -> Callable[_Parameters, _Result]:
    """Compile a function to machine code at its first call; it runs without the interpreter and its lock."""
    return cast(Callable[_Parameters, _Result], numba.njit(forceinline=True, **OPTIONS)(function))


def inlined(function: Callable[_Parameters, _Result]) -> Callable[_Parameters, _Result]:
    """Compile a function into others. Only machine code can call it: called from Python it ends the process."""
    return cast(Callable[_Parameters, _Result], numba.njit(forceinline=True, **INNER_OPTIONS)(function))


def _prefetch(_: Any, array: Any, index: Any) -> Any:
    """What numba makes of ``prefetch``: its signature, and a function that writes LLVM's code."""

    def code(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        data = context.make_array(signature.args[0])(context, builder, arguments[0]).data
        address = builder.bitcast(builder.gep(data, [arguments[1]]), ir.IntType(8).as_pointer())
        flag = ir.IntType(32)
        kind = ir.FunctionType(ir.VoidType(), [address.type, flag, flag, flag])
        function = builder.module.declare_intrinsic("llvm.prefetch", [address.type], kind)
        builder.call(function, [address, *(ir.Constant(flag, value) for value in (0, 3, 1))])
        return context.get_dummy_value()

    return types.void(array, index), code


prefetch: Callable[[NDArray[Any], Any], None] = cast(Any, intrinsic(_prefetch))
"""Have the processor bring an item of an array near without waiting for it; any index will do, even one outside."""
