"""Numeric kernels: loops over arrays that numba compiles to machine code.

``compiled`` is a decorator for kernels that always run compiled, such as the rate allocators. A ``Kernel`` runs as
plain Python where its input is small and compiled where it is large, with the same result to the bit::

    @Kernel
    def _total(values: FloatArray) -> float:
        total = 0.0
        for value in values:
            total += value
        return total

    total = _total.for_steps(len(values))
    print(total(values))

Importing numba takes longer than any decision for a small fabric, so nothing here imports it before a kernel is
compiled. To give the same bits both ways, a kernel fixes the order of every sum and uses no fused operations.

numba caches machine code on disk and checks only the file that holds the function. A kernel also depends on functions
and constants of other files, so ``fingerprint`` adds these to the cache key.
"""

import dis
import hashlib
from collections.abc import Callable, Iterator
from functools import cached_property
from types import CodeType, FunctionType
from typing import Any, ClassVar, Generic, ParamSpec, TypeVar, cast

import numpy as np

_P = ParamSpec("_P")
_R = TypeVar("_R")

MIN_COMPILED_STEPS = 100_000
"""A kernel that reads fewer array elements than this runs as plain Python, unless ``Kernel.compile_all`` was called."""


class Kernel(Generic[_P, _R]):
    """A function of arrays and numbers, run as plain Python or compiled; ``interpreted`` is the plain function."""

    _compiles_all: ClassVar[bool] = False

    def __init__(self, interpreted: Callable[_P, _R]) -> None:
        self.interpreted = interpreted

    @classmethod
    def compile_all(cls) -> None:
        """Compile every kernel from now on, however small its input: for processes that decide many times."""
        cls._compiles_all = True

    def for_steps(self, steps: int) -> Callable[_P, _R]:
        """Return the faster form of the function for a call that reads about this many array elements."""
        return self.compiled if steps >= MIN_COMPILED_STEPS or self._compiles_all else self.interpreted

    @cached_property
    def compiled(self) -> Callable[_P, _R]:
        """The function as machine code."""
        return compiled(self.interpreted)


def compiled(function: Callable[_P, _R]) -> Callable[_P, _R]:
    """Compile a function at its first call, and cache the machine code beside its source or in the user's cache.

    The compiled function releases the GIL. Division by zero follows NumPy: it gives an infinity or NaN.
    """
    import numba

    dispatcher: Any = numba.njit(cache=True, nogil=True, error_model="numpy")(function)
    cache = dispatcher._cache
    index_key = cache._index_key
    cache._index_key = lambda *call: (*index_key(*call), fingerprint(function))
    return cast(Callable[_P, _R], dispatcher)


def fingerprint(function: Callable[..., Any]) -> str:
    """Return a hash of a function's code, of every function it calls and of every constant they read.

    It hashes the code as loaded, because a source file may have changed since.

    Raises:
        TypeError: The function reads a global of a kind that cannot be hashed.
    """
    from numba.core.dispatcher import Dispatcher

    found: dict[str, str] = {}
    pending = [cast(FunctionType, function)]
    while pending:
        kernel = pending.pop()
        name = f"{kernel.__module__}.{kernel.__qualname__}"
        if name in found:
            continue
        codes = list(_with_nested(kernel.__code__))
        found[name] = repr([_contents(code) for code in codes])
        for read in sorted({name for code in codes for name in _globals_of(code)} & kernel.__globals__.keys()):
            value = kernel.__globals__[read]
            if isinstance(value, Dispatcher):
                found[f"{name}: {read}"] = repr(sorted(value.targetoptions.items()))
                pending.append(value.py_func)
            elif isinstance(value, int | float):
                found[f"{name}: {read}"] = repr(value)
            elif value is not np:
                raise TypeError(f"{name} reads the global {read}, which cannot be hashed: {value!r}")
    return hashlib.sha256(repr(sorted(found.items())).encode()).hexdigest()


def _with_nested(code: CodeType) -> Iterator[CodeType]:
    yield code
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from _with_nested(constant)


def _contents(code: CodeType) -> tuple[Any, ...]:
    constants = tuple(constant for constant in code.co_consts if not isinstance(constant, CodeType))
    return code.co_code, constants, code.co_names, code.co_varnames, code.co_freevars, code.co_cellvars


def _globals_of(code: CodeType) -> Iterator[str]:
    return (step.argval for step in dis.get_instructions(code) if step.opname == "LOAD_GLOBAL")
