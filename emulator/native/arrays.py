"""Items and parts of arrays, records and tuples in machine code."""

import ast
from dataclasses import replace

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
    Place,
    Record,
    Tuple,
    Value,
    llvm_type,
    llvm_types,
    scalar,
)

ITEMS = {U64: "i64", I64: "i64", BYTE: "i8", F64: "double"}
"""LLVM's types of items."""

_BYTES = {U64: 8, I64: 8, BYTE: 1, F64: 8}


def field(record: Value, name: str) -> Value:
    """Return a field of a record."""
    if not isinstance(record.kind, Record):
        raise LoweringError(f"field {name!r} of a {record.kind}")
    first = 0
    for found, kind in record.kind.fields:
        size = len(llvm_types(kind))
        if found == name:
            return Value(kind, record.parts[first : first + size])
        first += size
    raise LoweringError(f"field {name!r}")


def make_record(names: tuple[str, ...], values: list[Value]) -> Value:
    """Return a record of these fields."""
    if len(names) != len(values):
        raise LoweringError(f"{len(values)} fields of the {len(names)} {', '.join(names)}")
    values = [typed(value) for value in values]
    kinds = tuple((name, value.kind) for name, value in zip(names, values, strict=True))
    return Value(Record(kinds), tuple(part for value in values for part in value.parts))


def from_row(code: Code, array: Value, indices: list[Value], first: Value) -> Value:
    """Return the items of a row from one on, as an array; the item must not lie behind the row."""
    assert isinstance(array.kind, Array)
    if first.kind != NUMBER or int(first.text) < 0 or len(indices) != len(array.kind.row):
        raise LoweringError("a part of an array that is not the end of a row, from a number of the source on")
    start = part(code, array, [*indices, first])
    assert isinstance(start, Place)
    rest = code.value(I64, f"sub i64 {_shape(array)[-1]}, {first.text}")
    return Value(Array(array.kind.item, memory=array.kind.memory), (start.address, rest.text))


def part(code: Code, array: Value, indices: list[Value]) -> Value | Place:
    """Return the place of an item; or an array, where there are fewer indices. Nothing is checked."""
    assert isinstance(array.kind, Array)
    shape = _shape(array)
    if len(indices) > len(shape):
        raise LoweringError(f"{len(indices)} indices of an array of {len(shape)} dimensions")
    at = "0"
    for number, size in enumerate(shape):
        if number:
            at = code.value(I64, f"mul nsw i64 {at}, {size}").text
        if number < len(indices):
            index = _from_start(code, indices[number], size, is_signed=array.kind.is_signed)
            at = code.value(I64, f"add nsw i64 {at}, {index}").text if number else index
    address = code.value(U64, f"getelementptr inbounds {ITEMS[array.kind.item]}, ptr {array.text}, i64 {at}").text
    if len(indices) == len(shape):
        return Place(array.kind.item, address, array.kind.memory)
    row, (rows, *sizes) = array.kind.row[len(indices) :], shape[len(indices) :]
    untold = (size for told, size in zip(row, sizes, strict=True) if told == 0)
    return Value(replace(array.kind, row=row), (address, rows, *untold))


def _shape(array: Value) -> tuple[str, ...]:
    assert isinstance(array.kind, Array)
    rows, *untold = array.parts[1:]
    return rows, *(str(size) if size else untold.pop(0) for size in array.kind.row)


def _from_start(code: Code, index: Value, size: str, *, is_signed: bool) -> str:
    if index.kind == NUMBER and int(index.text) >= 0:
        return index.text
    index = typed(index)
    if index.kind == U64 or (index.kind == I64 and not is_signed):
        return index.text
    if index.kind != I64:
        raise LoweringError(f"an index of type {index.kind}")
    is_negative = code.value(BOOL, f"icmp slt i64 {index.text}, 0")
    other = code.value(I64, f"add i64 {index.text}, {size}")
    return code.value(I64, f"select i1 {is_negative.text}, i64 {other.text}, i64 {index.text}").text


def read(code: Code, place: Place) -> Value:
    """Read an item."""
    kind = place.item
    item = code.value(kind, f"load {ITEMS[kind]}, ptr {place.address}, align {_BYTES[kind]}{place.tag}")
    return code.value(BYTE, f"zext i8 {item.text} to i64") if kind == BYTE else item


def write(code: Code, place: Place, value: Value) -> None:
    """Write an item; a byte keeps the low eight bits."""
    kind = place.item
    made = converted(code, value, U64 if kind == BYTE else kind, cast=True)
    if kind == BYTE:
        made = code.value(BYTE, f"trunc i64 {made.text} to i8")
    code.append(f"store {ITEMS[kind]} {made.text}, ptr {place.address}, align {_BYTES[kind]}{place.tag}")


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
