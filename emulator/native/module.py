"""A module of machine code: the functions of a generated source, and those of the emulator that they call.

Every function is compiled once for each combination of types that it is called with.
"""

import ast
import inspect
import textwrap
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from types import FunctionType
from typing import Any, Protocol

import numpy as np

from emulator.native.arithmetic import real
from emulator.native.code import (
    BOOL,
    I64,
    NUMBER,
    U64,
    Array,
    Code,
    Kind,
    LoweringError,
    Value,
    llvm_type,
    scalar,
    with_types,
)
from emulator.native.functions import Lowered, entry, lower
from emulator.native.intrinsics import Intrinsic

INLINED_ALWAYS = frozenset({"forward", "arrive", "start"})
"""Functions of a generated source that become part of their only caller, however large they are."""

CALLED_BY_ADDRESS = frozenset({"run"})
"""Functions that other machine code calls by their address."""

_ITEMS = {np.dtype(np.uint64): U64, np.dtype(np.int64): I64}


def inner(symbol: str) -> str:
    """Return the symbol by which other machine code calls a function."""
    return f"{symbol}.inner"


class Function(Protocol):
    """A function to be compiled: its source, and the names that it sees."""

    @property
    def name(self) -> str:
        """The function's name."""

    @property
    def node(self) -> ast.FunctionDef:
        """The function's source."""

    @property
    def names(self) -> Mapping[str, Any]:
        """The names that it sees."""


class Inlined:
    """A function of the emulator that becomes part of the machine code that calls it."""

    def __init__(self, function: FunctionType) -> None:
        self.name = function.__name__
        self.names: Mapping[str, Any] = function.__globals__
        self._python = function

    @property
    def node(self) -> ast.FunctionDef:
        """The function's source."""
        return _parsed(self._python)


class Separate(Inlined):
    """A function of the emulator that machine code calls, and that stays out of its callers."""


@dataclass(frozen=True)
class Generated:
    """A function of a generated source."""

    name: str
    node: ast.FunctionDef
    names: Mapping[str, Any]


def generated(source: str, known: Mapping[str, Any]) -> dict[str, Generated]:
    """Return the functions of a source; ``known`` are the names that they use besides each other."""
    names = dict(known)
    made = {
        node.name: Generated(node.name, node, names)
        for node in ast.parse(source).body
        if isinstance(node, ast.FunctionDef)
    }
    names |= made
    return made


class Module:
    """Compiles functions as they are called; ``text`` is LLVM's text of all of them."""

    def __init__(self) -> None:
        self._made: dict[tuple[int, tuple[Kind, ...]], Lowered] = {}
        self._kept: list[Any] = []  # their identities are keys
        self._constants: dict[int, tuple[str, Value]] = {}
        self._declarations: dict[str, None] = {}
        self._entries: list[str] = []

    def add(self, function: Function, arguments: Sequence[Kind], symbol: str) -> Kind | None:
        """Compile a function that others than the module call, by its symbol. Returns the type of its result.

        Python gives the addresses of records. Other machine code calls ``inner(symbol)`` with their parts.
        """
        inside = self.function(function, tuple(arguments))
        self._entries.append(entry(symbol, inside, arguments, by_address=True))
        if function.name in CALLED_BY_ADDRESS:
            self._entries.append(entry(inner(symbol), inside, arguments, by_address=False))
        return inside.result

    def function(self, function: Function, arguments: tuple[Kind, ...]) -> Lowered:
        """Return a function for arguments of these types."""
        key = id(function), arguments
        if key not in self._made:
            self._kept.append(function)
            symbol = f"{function.name}.{len(self._kept)}"
            is_inlined = isinstance(function, Inlined) or function.name in INLINED_ALWAYS
            attributes = "alwaysinline nounwind" if is_inlined else "nounwind"
            if isinstance(function, Separate):
                attributes = "noinline nounwind"
            self._made[key] = lower(symbol, function.node, arguments, _Scope(self, function.names), attributes)
        return self._made[key]

    def constant(self, name: str, array: "np.ndarray[Any, Any]") -> Value:
        """Return a constant array of the emulator."""
        if id(array) not in self._constants:
            self._kept.append(array)
            symbol = f"{name}.{len(self._constants)}"
            words = ", ".join(f"i64 {int(item)}" for item in array)
            text = f"@{symbol} = internal constant [{len(array)} x i64] [{words}]"
            value = Value(Array(_ITEMS[array.dtype]), (f"@{symbol}", str(len(array))))
            self._constants[id(array)] = text, value
        return self._constants[id(array)][1]

    def declare(self, declaration: str) -> None:
        """Declare a function that is not in the module."""
        if declaration:
            self._declarations[declaration] = None

    @property
    def text(self) -> str:
        """LLVM's text."""
        constants = (text for text, _ in self._constants.values())
        functions = (made.text for made in self._made.values())
        return "\n".join([*self._declarations, *constants, *functions, *self._entries])


class _Scope:
    """The names that a function sees."""

    def __init__(self, module: Module, names: Mapping[str, Any]) -> None:
        self._module = module
        self._names = names

    def constant(self, name: str) -> Value | None:
        """Return a constant or a constant array by its name."""
        found = self._names.get(name)
        if isinstance(found, np.ndarray) and found.dtype in _ITEMS and found.ndim == 1:
            return self._module.constant(name, found)
        if isinstance(found, np.uint64):
            return scalar(U64, str(int(found)))
        match found:
            case bool(flag):
                return scalar(BOOL, "true" if flag else "false")
            case int(number):
                return scalar(NUMBER, str(number))
            case float(number):
                return real(number)
        return None

    def call(self, code: Code, name: str, arguments: list[Value]) -> Value | None:
        """Call a function of the same source, or one of the emulator."""
        found = self._names.get(name)
        if isinstance(found, Intrinsic):
            self._module.declare(found.declaration)
            return found.call(code, arguments)
        if not isinstance(found, Inlined | Generated):
            raise LoweringError(f"function {name!r}")
        made = self._module.function(found, tuple(argument.kind for argument in arguments))
        call = f"call {llvm_type(made.result)} @{made.symbol}({with_types(arguments)})"
        if made.result is None:
            code.append(call)
            return None
        return code.value(made.result, call)


@cache
def _parsed(function: FunctionType) -> ast.FunctionDef:
    [node] = ast.parse(textwrap.dedent(inspect.getsource(function))).body
    assert isinstance(node, ast.FunctionDef)
    return node
