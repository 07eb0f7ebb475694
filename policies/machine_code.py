"""How loops become machine code, which is kept on disk for no longer than what it was made of stays the same.

numba tells by a function's own file whether its machine code is still good. What the function calls and the constants
that it reads may stand in other files, so these are part of the key under which it is kept.
"""

import dis
import hashlib
from collections.abc import Callable, Iterator
from types import CodeType, FunctionType
from typing import Any, ParamSpec, TypeVar, cast

import numba
import numpy as np
from numba.core.dispatcher import Dispatcher

_Parameters = ParamSpec("_Parameters")
_Result = TypeVar("_Result")


def compiled(function: Callable[_Parameters, _Result]) -> Callable[_Parameters, _Result]:
    """Compile a function at its first call and keep the machine code, beside its source or in the user's cache.

    Dividing by zero raises nothing. Called in a thread, it lets others run.
    """
    dispatcher: Any = numba.njit(cache=True, nogil=True, error_model="numpy")(function)
    cache = dispatcher._cache
    own_key = cache._index_key
    cache._index_key = lambda *call: (*own_key(*call), ingredients(function))
    return cast(Callable[_Parameters, _Result], dispatcher)


def ingredients(function: Callable[..., Any]) -> str:
    """A hash of a function's code, of all that it calls and of the constants that all these read.

    Of the code as it was loaded: a file may have changed since. Raises TypeError, naming the function and what it
    reads, where it cannot be told whether that is the same.
    """
    found: dict[str, str] = {}
    waiting = [cast(FunctionType, function)]
    while waiting:
        loop = waiting.pop()
        name = f"{loop.__module__}.{loop.__qualname__}"
        if name in found:
            continue
        codes = list(_with_nested(loop.__code__))
        found[name] = repr([_contents(code) for code in codes])
        for read in sorted({name for code in codes for name in _globals_of(code)} & loop.__globals__.keys()):
            value = loop.__globals__[read]
            if isinstance(value, Dispatcher):
                found[f"{name}: {read}"] = repr(sorted(value.targetoptions.items()))
                waiting.append(value.py_func)
            elif isinstance(value, int | float):
                found[f"{name}: {read}"] = repr(value)
            elif value is not np:
                raise TypeError(f"{name} reads {read}, of which nothing tells whether it has changed: {value!r}")
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
