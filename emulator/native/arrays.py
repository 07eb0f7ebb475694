"""Items and parts of arrays, records and tuples in machine code."""

import ast

from emulator.native.arithmetic import converted, typed
from emulator.native.code import (
    BOOL,
    BYTE,
    F64,
    I64,
    NUMBER,
    U64,
    Array,
    Code,
    LoweringError,
    Record,
    Tuple,
    Value,
    llvm_type,
    llvm_types,
    scalar,
)

_ITEMS = {U64: "i64", I64: "i64", BYTE: "i8", F64: "double"}
_BYTES = {U64: 8, I64: 8, BYTE: 1, F64: 8}


def field(record: Value, name: str) -> Value:
    """Return an array of a record."""
    if not isinstance(record.kind, Record):
        raise LoweringError(f"field {name!r} of a {record.kind}")
    first = 0
    for found, array in record.kind.fields:
        size = len(llvm_types(array))
        if found == name:
            return Value(array, record.parts[first : first + size])
        first += size
    raise LoweringError(f"field {name!r}")


def part(code: Code, array: Value, indices: list[Value]) -> Value:
    """Return the address of an item, as a value of the item's type; or an array, where there are fewer indices.

    As in Python, a negative index counts from the end. Nothing is checked.
    """
    assert isinstance(array.kind, Array)
    shape = array.parts[1], *map(str, array.kind.row)
    if len(indices) > len(shape):
        raise LoweringError(f"{len(indices)} indices of an array of {len(shape)} dimensions")
    at = "0"
    for number, size in enumerate(shape):
        if number:
            at = code.value(I64, f"mul i64 {at}, {size}").text
        if number < len(indices):
            index = _from_start(code, indices[number], size)
            at = code.value(I64, f"add i64 {at}, {index}").text if number else index
    item, rest = _ITEMS[array.kind.item], array.kind.row[len(indices) - 1 :]
    made = code.value(array.kind.item, f"getelementptr {item}, ptr {array.text}, i64 {at}")
    return Value(Array(array.kind.item, rest[1:]), (made.text, str(rest[0]))) if rest else made


def _from_start(code: Code, index: Value, size: str) -> str:
    if index.kind == NUMBER and int(index.text) >= 0:
        return index.text
    index = typed(index)
    if index.kind == U64:
        return index.text
    if index.kind != I64:
        raise LoweringError(f"an index of type {index.kind}")
    is_negative = code.value(BOOL, f"icmp slt i64 {index.text}, 0")
    other = code.value(I64, f"add i64 {index.text}, {size}")
    return code.value(I64, f"select i1 {is_negative.text}, i64 {other.text}, i64 {index.text}").text


def read(code: Code, place: Value) -> Value:
    """Read the item at an address."""
    kind = str(place.kind)
    item = code.value(kind, f"load {_ITEMS[kind]}, ptr {place.text}, align {_BYTES[kind]}")
    return code.value(BYTE, f"zext i8 {item.text} to i64") if kind == BYTE else item


def write(code: Code, place: Value, value: Value) -> None:
    """Write the item at an address; a byte keeps the low eight bits."""
    kind = str(place.kind)
    made = converted(code, value, U64 if kind == BYTE else kind, cast=True)
    if kind == BYTE:
        made = code.value(BYTE, f"trunc i64 {made.text} to i8")
    code.append(f"store {_ITEMS[kind]} {made.text}, ptr {place.text}, align {_BYTES[kind]}")


def make_tuple(code: Code, values: list[Value]) -> Value:
    """Return a tuple of integers."""
    values = [typed(value) for value in values]
    if not all(value.kind in (U64, I64) for value in values):
        raise LoweringError(f"a tuple of {', '.join(str(value.kind) for value in values)}")
    made = scalar(Tuple(tuple(str(value.kind) for value in values)), "undef")
    for number, value in enumerate(values):
        made = code.value(made.kind, f"insertvalue {llvm_type(made.kind)} {made.text}, i64 {value.text}, {number}")
    return made


def items(code: Code, value: Value) -> list[Value]:
    """Return the items of a tuple."""
    if not isinstance(value.kind, Tuple):
        raise LoweringError(f"the items of a {value.kind}")
    kind = llvm_type(value.kind)
    return [
        code.value(item, f"extractvalue {kind} {value.text}, {number}") for number, item in enumerate(value.kind.items)
    ]


def tuple_item(code: Code, value: Value, index: ast.expr, at: Value | None) -> Value:
    """Return an item of a tuple, or the first ones as a tuple; ``at`` is the index where it is one."""
    assert isinstance(value.kind, Tuple)
    if isinstance(index, ast.Slice):
        if index.lower or index.step or not isinstance(index.upper, ast.Constant):
            raise LoweringError(f"items {ast.unparse(index)!r} of a tuple")
        return make_tuple(code, items(code, value)[: int(str(index.upper.value))])
    assert at is not None
    if at.kind == NUMBER:
        return items(code, value)[int(at.text)]
    place = code.place(value.kind)
    code.store(place, value)
    address = code.value(U64, f"getelementptr i64, ptr {place.text}, i64 {at.text}")
    return code.value(value.kind.items[0], f"load i64, ptr {address.text}, align 8")
