"""A module of machine code: the functions of a generated source, and those of the emulator that they call.

Every function is compiled once for each combination of types that it is called with.
"""

import ast
import inspect
import math
import re
import textwrap
from collections import ChainMap
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from itertools import starmap, zip_longest
from types import BuiltinFunctionType, FunctionType, ModuleType
from typing import Any, Protocol, cast

import numpy as np

from emulator.native.arithmetic import converted, mathematics, real
from emulator.native.arrays import make_record
from emulator.native.code import (
    BOOL,
    F64,
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

_TAG = re.compile(r"!tbaa !([a-z]\w*)")

_CONSTANT_ITEMS = {np.dtype(np.uint64): U64, np.dtype(np.int64): I64}

_MATHEMATICS: Mapping[Any, tuple[str, int, Kind]] = {
    math.sqrt: ("sqrt", 1, F64),
    math.exp: ("exp", 1, F64),
    math.log: ("log", 1, F64),
    math.log2: ("log2", 1, F64),
    math.pow: ("pow", 2, F64),
    math.fabs: ("fabs", 1, F64),
    math.floor: ("floor", 1, I64),
    math.ceil: ("ceil", 1, I64),
}
"""Functions of Python's ``math``: LLVM's name, number of arguments, and type of the result."""


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

    @property
    def file(self) -> str:
        """Where the source comes from."""


class Inlined:
    """A function of the emulator that becomes part of the machine code that calls it."""

    def __init__(self, function: Callable[..., Any]) -> None:
        self.python = cast(FunctionType, function)
        self.name = self.python.__name__
        self.file = self.python.__code__.co_filename

    @property
    def node(self) -> ast.FunctionDef:
        """The function's source."""
        return _parsed(self.python)

    @property
    def names(self) -> Mapping[str, Any]:
        """The names that it sees: those of its module, and variables of the functions around it."""
        cells = zip(self.python.__code__.co_freevars, self.python.__closure__ or (), strict=True)
        return ChainMap({name: cell.cell_contents for name, cell in cells}, self.python.__globals__)


class Separate(Inlined):
    """A function of the emulator that machine code calls, and that stays out of its callers."""


@dataclass(frozen=True)
class Generated:
    """A function of a generated source."""

    name: str
    node: ast.FunctionDef
    names: Mapping[str, Any]
    file: str = "generated source"


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
        names = [parameter.arg for parameter in function.node.args.args]
        inside = self.function(function, tuple(starmap(_in_memory, zip_longest(names, arguments))))
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
            scope = _Scope(self, function.names)
            self._made[key] = lower(symbol, function.node, arguments, scope, attributes, function.file)
        return self._made[key]

    def constant(self, name: str, array: "np.ndarray[Any, Any]") -> Value:
        """Return a constant array of the emulator."""
        if id(array) not in self._constants:
            self._kept.append(array)
            symbol = f"{name}.{len(self._constants)}"
            words = ", ".join(f"i64 {int(item)}" for item in array)
            text = f"@{symbol} = internal constant [{len(array)} x i64] [{words}]"
            value = Value(Array(_CONSTANT_ITEMS[array.dtype]), (f"@{symbol}", str(len(array))))
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
        return _with_tags("\n".join([*self._declarations, *constants, *functions, *self._entries]))


class _Scope:
    """The names that a function sees."""

    def __init__(self, module: Module, names: Mapping[str, Any]) -> None:
        self._module = module
        self._names = names

    def constant(self, name: str) -> Value | None:
        """Return a constant or a constant array by its name, which may be one in a module."""
        found = self._found(name)
        if isinstance(found, np.ndarray) and found.dtype in _CONSTANT_ITEMS and found.ndim == 1:
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
        found = self._found(name)
        if isinstance(found, Intrinsic):
            self._module.declare(found.declaration)
            return found.call(code, arguments)
        if isinstance(found, type) and issubclass(found, tuple) and hasattr(found, "_fields"):
            return make_record(found._fields, arguments)
        if isinstance(found, BuiltinFunctionType) and found in _MATHEMATICS:
            llvm_name, count, kind = _MATHEMATICS[found]
            if len(arguments) != count:
                raise LoweringError(f"{name} of {len(arguments)} arguments")
            return converted(code, mathematics(code, llvm_name, arguments), kind, cast=True)
        if isinstance(found, FunctionType):
            raise LoweringError(f"function {name!r}, which is not decorated by emulator.jit.compiled")
        if not isinstance(found, Inlined | Generated):
            raise LoweringError(f"function {name!r}")
        made = self._module.function(found, tuple(argument.kind for argument in arguments))
        call = f"call {llvm_type(made.result)} @{made.symbol}({with_types(arguments)})"
        if made.result is None:
            code.append(call)
            return None
        return code.split(made.result, code.value(made.result, call).text)

    def _found(self, name: str) -> Any:
        first, *rest = name.split(".")
        found = self._names.get(first)
        for part in rest:
            found = getattr(found, part, None) if isinstance(found, ModuleType) else None
        return found


def _in_memory(name: str | None, kind: Kind) -> Kind:
    """Return the type of an argument that Python gives: the switches' memory is in no array of a state."""
    return replace(kind, memory=name) if name == "memory" and isinstance(kind, Array) else kind


def _with_tags(text: str) -> str:
    """Return LLVM's text with the definitions of the tags of memories that it has."""
    names = sorted(set(_TAG.findall(text)))
    numbers = {name: 2 * number + 2 for number, name in enumerate(names)}
    lines = ['!0 = !{!"memory"}'] if names else []
    for name, number in numbers.items():
        lines += [f'!{number - 1} = !{{!"{name}", !0, i64 0}}', f"!{number} = !{{!{number - 1}, !{number - 1}, i64 0}}"]
    return "\n".join([_TAG.sub(lambda found: f"!tbaa !{numbers[found[1]]}", text), *lines])


@cache
def _parsed(function: FunctionType) -> ast.FunctionDef:
    """Return a function's source; its lines have the numbers that they have in the file."""
    name, file = function.__name__, function.__code__.co_filename
    try:
        lines, first = inspect.getsourcelines(function)
        [node] = ast.parse(textwrap.dedent("".join(lines))).body
    except (OSError, SyntaxError, ValueError) as error:
        raise LoweringError(f"{file}: {name}: its source cannot be read ({error})") from error
    if not isinstance(node, ast.FunctionDef) or node.name != function.__code__.co_name:
        raise LoweringError(f"{file}:{first}: {name}: no function that begins with def")
    ast.increment_lineno(node, first - 1)
    return node
