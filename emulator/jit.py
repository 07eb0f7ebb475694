"""Decorators for functions that become machine code, and what such functions may call besides."""

from collections.abc import Callable
from typing import Any, ParamSpec, TypeVar, cast

from numpy.typing import NDArray

from emulator.native.callable import CompiledFunction
from emulator.native.intrinsics import External, LoadAcquire, Prefetch, StoreRelease
from emulator.native.module import Inlined, Separate

_Parameters = ParamSpec("_Parameters")
_Result = TypeVar("_Result")


def compiled(function: Callable[_Parameters, _Result]) -> Callable[_Parameters, _Result]:
    """Compile a function at its first call; it runs without the interpreter and its lock."""
    return cast(Callable[_Parameters, _Result], CompiledFunction(function))


def inlined(function: Callable[_Parameters, _Result]) -> Callable[_Parameters, _Result]:
    """Compile a function into its callers. Only machine code may call it."""
    return cast(Callable[_Parameters, _Result], Inlined(function))


def separate(function: Callable[_Parameters, _Result]) -> Callable[_Parameters, _Result]:
    """Compile a function that machine code calls, and that has no place in its callers: it runs rarely."""
    return cast(Callable[_Parameters, _Result], Separate(function))


prefetch: Callable[[NDArray[Any], Any], None] = cast(Any, Prefetch())
"""Prefetch an array item into the processor's cache without waiting; any index is allowed, even out of range."""

load_acquire: Callable[[NDArray[Any], Any], int] = cast(Any, LoadAcquire())
"""Read a 64-bit integer that another thread stores; what that thread wrote before is then visible."""

store_release: Callable[[NDArray[Any], Any, Any], None] = cast(Any, StoreRelease())
"""Store a 64-bit integer for other threads, after all that this thread has written before."""


def external(name: str, result_bits: int, *argument_bits: int) -> Callable[..., Any]:
    """Return a function of the C library, for machine code; ``errno`` is not to be had."""
    return cast(Callable[..., Any], External(name, result_bits, argument_bits))
