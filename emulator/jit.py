"""Decorators for functions that become machine code, and what such functions may call besides."""

from collections.abc import Callable
from types import FunctionType
from typing import Any, ParamSpec, TypeVar, cast

from numpy.typing import NDArray

from emulator.native.callable import CompiledFunction
from emulator.native.intrinsics import External, Prefetch
from emulator.native.module import Inlined

_Parameters = ParamSpec("_Parameters")
_Result = TypeVar("_Result")


def compiled(function: Callable[_Parameters, _Result]) -> Callable[_Parameters, _Result]:
    """Compile a function at its first call; it runs without the interpreter and its lock."""
    return cast(Callable[_Parameters, _Result], CompiledFunction(cast(FunctionType, function)))


def inlined(function: Callable[_Parameters, _Result]) -> Callable[_Parameters, _Result]:
    """Compile a function into its callers. Only machine code may call it."""
    return cast(Callable[_Parameters, _Result], Inlined(cast(FunctionType, function)))


prefetch: Callable[[NDArray[Any], Any], None] = cast(Any, Prefetch())
"""Prefetch an array item into the processor's cache without waiting; any index is allowed, even out of range."""


def external(name: str, result_bits: int, *argument_bits: int) -> Callable[..., Any]:
    """Return a function of the C library, for machine code; ``errno`` is not to be had."""
    return cast(Callable[..., Any], External(name, result_bits, argument_bits))
