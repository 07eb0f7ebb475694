"""Options and decorators for just-in-time compilation with numba."""

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
    # The engine allocates nothing, so arrays need no reference counts. Without them it is four times as fast.
    "_nrt": False,
    # Division by zero raises nothing; the engine and compiled programs never divide by 0.
    "error_model": "numpy",
    "no_cfunc_wrapper": True,
}

INNER_OPTIONS: dict[str, Any] = OPTIONS | {"no_cpython_wrapper": True}
"""Options for functions called by machine code only: without Python wrappers, compilation takes a third less time."""


def compiled(function: Callable[_Parameters, _Result]) -> Callable[_Parameters, _Result]:
    """Compile a function at its first call; it runs without the interpreter and its lock."""
    return cast(Callable[_Parameters, _Result], numba.njit(forceinline=True, **OPTIONS)(function))


def inlined(function: Callable[_Parameters, _Result]) -> Callable[_Parameters, _Result]:
    """Compile a function into its callers. Only machine code may call it: a call from Python crashes the process."""
    return cast(Callable[_Parameters, _Result], numba.njit(forceinline=True, **INNER_OPTIONS)(function))


def separate(function: Callable[_Parameters, _Result]) -> Callable[_Parameters, _Result]:
    """Compile a function that machine code calls. One that calls ``stay_separate`` is compiled into no caller."""
    return cast(Callable[_Parameters, _Result], numba.njit(**INNER_OPTIONS)(function))


def _prefetch(_: Any, array: Any, index: Any) -> Any:
    """Return the numba signature and the LLVM code generator of ``prefetch``."""

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
"""Prefetch an array item into the processor's cache without waiting; any index is allowed, even out of range."""


def _stay_separate(_: Any) -> Any:
    """Return the numba signature and the LLVM code generator of ``stay_separate``."""

    def code(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        del signature, arguments
        builder.function.attributes.add("noinline")
        return context.get_dummy_value()

    return types.void(), code


stay_separate: Callable[[], None] = cast(Any, intrinsic(_stay_separate))
"""Keep the function that calls this out of its callers, which are faster without what rarely runs."""


def _load_acquire(_: Any, array: Any, index: Any) -> Any:
    """Return the numba signature and the LLVM code generator of ``load_acquire``."""

    def code(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        data = context.make_array(signature.args[0])(context, builder, arguments[0]).data
        return builder.load_atomic(builder.gep(data, [arguments[1]]), "acquire", 8)

    return types.int64(array, index), code


def _store_release(_: Any, array: Any, index: Any, value: Any) -> Any:
    """Return the numba signature and the LLVM code generator of ``store_release``."""

    def code(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        data = context.make_array(signature.args[0])(context, builder, arguments[0]).data
        builder.store_atomic(arguments[2], builder.gep(data, [arguments[1]]), "release", 8)
        return context.get_dummy_value()

    return types.void(array, index, value), code


load_acquire: Callable[[NDArray[Any], Any], int] = cast(Any, intrinsic(_load_acquire))
"""Read a 64-bit integer that another thread stores; what that thread wrote before is then visible."""

store_release: Callable[[NDArray[Any], Any, Any], None] = cast(Any, intrinsic(_store_release))
"""Store a 64-bit integer for other threads, after all that this thread has written before."""


def external(name: str, result: Any, *arguments: Any) -> Callable[..., Any]:
    """Return a function of the C library, for machine code; ``errno`` is not to be had."""
    return cast(Callable[..., Any], types.ExternalFunction(name, result(*arguments)))
