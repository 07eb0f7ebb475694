"""Machine code that Python calls: functions compiled for the types of their arguments at the first call."""

import ctypes
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, replace
from functools import cache
from typing import Any, TypeVar

import numpy as np

from emulator.native.code import BOOL, BYTE, F64, I64, U64, Array, Kind, LoweringError, Record, llvm_types
from emulator.native.machine import MachineCode
from emulator.native.module import Function, Inlined, Module, inner

_ITEMS = {
    np.dtype(np.uint64): U64,
    np.dtype(np.int64): I64,
    np.dtype(np.uint8): BYTE,
    np.dtype(np.float64): F64,
}
_Type = TypeVar("_Type")

_RESULTS: dict[str, Any] = {U64: ctypes.c_uint64, I64: ctypes.c_int64, F64: ctypes.c_double, BOOL: ctypes.c_bool}


@dataclass(frozen=True)
class _Arrays:
    """What is known of the arrays of a named tuple besides their shapes."""

    views: Mapping[str, str] | None = None
    signed: Collection[str] = ()
    resized: Collection[str] = ()

    def known(self, name: str, kind: Array) -> Array:
        """Return the type of an array with what is known of it."""
        if self.views is None:
            return kind
        row = tuple(0 for _ in kind.row) if name in self.resized else kind.row
        return replace(kind, row=row, memory=self.views.get(name, name), is_signed=name in self.signed)


_ARRAYS: dict[type, _Arrays] = {}


def separate_arrays(
    *, views: Mapping[str, str], signed: Collection[str], resized: Collection[str]
) -> Callable[[type[_Type]], type[_Type]]:
    """Tell of a class of named tuples that its arrays have no byte in common, so that machine code is faster.

    ``views`` has the exceptions: arrays that lie in the memory of another one, by name. Negative indices are used of
    those in ``signed`` only. The machine code serves rows of any size of those in ``resized``.
    """

    def known(found: type[_Type]) -> type[_Type]:
        _ARRAYS[found] = _Arrays(views, signed, resized)
        return found

    return known


def kind_of(value: Any) -> Kind:
    """Return the type of a value of Python in machine code. Raises LoweringError for one that it has none for."""
    if isinstance(value, np.ndarray):
        if value.dtype not in _ITEMS or not value.flags.c_contiguous or not value.ndim:
            raise LoweringError(
                f"an array of {value.ndim} dimensions of {value.dtype}, contiguous: {value.flags.c_contiguous}"
            )
        return _array(value.dtype, value.shape[1:])
    if isinstance(value, np.integer):
        return U64 if isinstance(value, np.uint64) else I64
    match value:
        case bool():
            return BOOL
        case int():
            return I64
        case float():
            return F64
        case tuple() if hasattr(value, "_fields"):
            arrays = _ARRAYS.get(type(value), _Arrays())
            kinds = [(name, kind_of(array)) for name, array in zip(value._fields, value, strict=True)]
            return _record(tuple((name, arrays.known(name, kind)) for name, kind in kinds if isinstance(kind, Array)))
    raise LoweringError(f"a {type(value).__name__}")


@cache
def _array(dtype: np.dtype[Any], row: tuple[int, ...]) -> Array:
    return Array(_ITEMS[dtype], row)


@cache
def _record(fields: tuple[tuple[str, Array], ...]) -> Record:
    return Record(fields)


class _Argument:
    """An argument of the last call: its type, and its parts as C passes them; None where it is no array or record."""

    def __init__(self, value: Any) -> None:
        self.value = value
        self.kind = kind_of(value)
        self.parts: tuple[Any, ...] | None = None
        if isinstance(value, np.ndarray):
            assert isinstance(self.kind, Array)
            self.parts = _array_parts(value, self.kind)
        elif isinstance(value, tuple):
            assert isinstance(self.kind, Record)
            kinds = (kind for _, kind in self.kind.fields if isinstance(kind, Array))
            parts = [part for array, kind in zip(value, kinds, strict=True) for part in _array_parts(array, kind)]
            self._shapes = np.array(parts, dtype=np.int64)
            self.parts = (self._shapes.ctypes.data,)


def _array_parts(array: "np.ndarray[Any, Any]", kind: Array) -> tuple[int, ...]:
    untold = (size for told, size in zip(kind.row, array.shape[1:], strict=True) if told == 0)
    return array.ctypes.data, len(array), *untold


def _parts(known: list[_Argument], arguments: tuple[Any, ...]) -> list[Any] | None:
    """Return the arguments' parts as C passes them; None where arrays or types are others than those that are known."""
    parts: list[Any] = []
    for one, argument in zip(known, arguments, strict=True):
        if one.parts is None and type(argument) is type(one.value):
            parts.append(int(argument) if isinstance(argument, np.integer) else argument)
        elif one.parts is not None and argument is one.value:
            parts += one.parts
        else:
            return None
    return parts


class Entry:
    """A function that Python may call: it is compiled for the types of its arguments at the first call.

    Other threads go on while it runs. The arrays of the last call are remembered, because most calls come with the same
    ones and what C needs of them takes longer than the call.
    """

    def __init__(self, function: Function) -> None:
        self._function = function
        self._made: dict[tuple[Kind, ...], tuple[MachineCode, Callable[..., Any]]] = {}
        self._last: tuple[list[_Argument], Callable[..., Any]] | None = None

    def __call__(self, *arguments: Any) -> Any:
        """Call the machine code for arguments of these types."""
        last = self._last
        parts = _parts(last[0], arguments) if last else None
        if last is None or parts is None:
            known = [_Argument(argument) for argument in arguments]
            last = self._last = known, self.compile(tuple(one.kind for one in known))
            parts = _parts(known, arguments)
        assert parts is not None
        return last[1](*parts)

    def compile(self, kinds: tuple[Kind, ...]) -> Callable[..., Any]:
        """Return the machine code for arguments of these types; it takes their parts."""
        if kinds not in self._made:
            module = Module()
            result = module.add(self._function, kinds, self._function.name)
            code = MachineCode(module.text)
            types = [part for kind in kinds for part in _c_types(kind)]
            pointer = ctypes.CFUNCTYPE(None if result is None else _RESULTS[str(result)], *types)
            self._made[kinds] = code, pointer(code.address(self._function.name))
        return self._made[kinds][1]

    def inner_address(self, kinds: tuple[Kind, ...]) -> int:
        """Return the address by which other machine code calls the function for arguments of these types."""
        self.compile(kinds)
        return self._made[kinds][0].address(inner(self._function.name))


def _c_types(kind: Kind) -> list[Any]:
    """Return C's types of an argument; a record comes as one address."""
    if isinstance(kind, Record):
        return [ctypes.c_int64]
    return [ctypes.c_double if part == "double" else ctypes.c_int64 for part in llvm_types(kind)]


class CompiledFunction(Entry, Inlined):
    """A function of the emulator that both Python and machine code may call."""

    def __init__(self, function: Callable[..., Any]) -> None:
        Inlined.__init__(self, function)
        Entry.__init__(self, self)
