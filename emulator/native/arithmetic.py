"""Arithmetic of machine code: conversions, operations and comparisons of values.

Integers wrap at 64 bits. Words (``U64``) and signed numbers (``I64``) do not mix: numpy would make them floating-point
numbers. An integer of the source and a byte take the type of the other operand, and a truth value counts as 0 or 1.
"""

import ast
import operator
import struct
from collections.abc import Callable

from emulator.native.code import BOOL, BYTE, F64, I64, NUMBER, U64, Code, Kind, LoweringError, Value, llvm_type, scalar

_WORD_MASK = (1 << 64) - 1
_INTEGERS = (U64, I64)
_OPERATORS = {
    ast.Add: "add",
    ast.Sub: "sub",
    ast.Mult: "mul",
    ast.BitAnd: "and",
    ast.BitOr: "or",
    ast.BitXor: "xor",
    ast.LShift: "shl",
}
_OF_TYPE = {
    U64: _OPERATORS | {ast.RShift: "lshr"},
    I64: _OPERATORS | {ast.RShift: "ashr"},
    F64: {ast.Add: "fadd", ast.Sub: "fsub", ast.Mult: "fmul", ast.Div: "fdiv"},
}
_OF_NUMBERS: dict[type[ast.operator], Callable[[int, int], int]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.LShift: operator.lshift,
    ast.RShift: operator.rshift,
    ast.BitAnd: operator.and_,
    ast.BitOr: operator.or_,
    ast.BitXor: operator.xor,
    ast.FloorDiv: operator.floordiv,
    ast.Mod: operator.mod,
}
_COMPARISONS = {ast.Eq: "eq", ast.NotEq: "ne", ast.Lt: "lt", ast.LtE: "le", ast.Gt: "gt", ast.GtE: "ge"}


def real(number: float) -> Value:
    """Return a floating-point constant, exact to the bit."""
    return scalar(F64, f"0x{struct.unpack('>Q', struct.pack('>d', number))[0]:016X}")


def _signed(number: str) -> Value:
    if not -(1 << 63) <= int(number) < 1 << 63:
        raise LoweringError(f"{number} as a signed number of 64 bits")
    return scalar(I64, number)


def typed(value: Value) -> Value:
    """Give an integer of the source, or a byte, the type that it has by itself."""
    match value.kind:
        case "number":
            return _signed(value.text)
        case "byte":
            return scalar(U64, value.text)
    return value


def converted(code: Code, value: Value, kind: Kind, *, cast: bool = False) -> Value:
    """Return a value as one of another type. What could change it, such as a word as a signed number, needs ``cast``.

    Raises LoweringError where that is not possible.
    """
    if value.kind == kind:
        return value
    match value.kind, kind:
        case "number", ("u64" | "i64"):
            return scalar(U64, str(int(value.text) & _WORD_MASK)) if kind == U64 else _signed(value.text)
        case "number", "f64":
            return real(float(value.text))
        case "byte", ("u64" | "i64"):
            return scalar(kind, value.text)
        case "bool", ("u64" | "i64"):
            return code.value(kind, f"zext i1 {value.text} to i64")
        case "i64", "f64":
            return code.value(F64, f"sitofp i64 {value.text} to double")
        case (("u64" | "byte"), "f64"):
            return code.value(F64, f"uitofp i64 {value.text} to double")
        case (("u64" | "i64"), ("u64" | "i64")) if cast:
            return scalar(kind, value.text)
        case "f64", ("u64" | "i64") if cast:
            cut = code.value(kind, f"fpto{'ui' if kind == U64 else 'si'} double {value.text} to i64")
            return code.value(kind, f"freeze i64 {cut.text}")  # any number where there is none
        case _, "bool" if cast:
            return truth(code, value)
    raise LoweringError(f"a {value.kind} as {kind}")


def truth(code: Code, value: Value) -> Value:
    """Return a value as a condition: an integer counts as true unless it is 0."""
    if value.kind == BOOL:
        return value
    value = typed(value)
    if value.kind == F64:
        return code.value(BOOL, f"fcmp une double {value.text}, 0.0")
    if value.kind not in _INTEGERS:
        raise LoweringError(f"a condition of type {value.kind}")
    return code.value(BOOL, f"icmp ne i64 {value.text}, 0")


def alike(code: Code, left: Value, right: Value, *, exact: bool = False) -> tuple[Value, Value]:
    """Return two values as ones of the same type.

    With ``exact`` an integer of the source may become a word, which compares and stores well but need not compute well:
    numpy would compute with floating-point numbers.
    """
    if left.kind == right.kind and left.kind not in (NUMBER, BYTE, BOOL):
        return left, right
    weak = (NUMBER, BYTE, BOOL)
    if left.kind in weak and right.kind in weak:
        if exact and left.kind == right.kind == BOOL:
            return left, right
        kind: Kind = U64 if {left.kind, right.kind} <= {BYTE, BOOL} and BYTE in (left.kind, right.kind) else I64
        return converted(code, left, kind), converted(code, right, kind)
    for one, other, is_left in ((left, right, True), (right, left, False)):
        number_as_word = one.kind == NUMBER and other.kind == U64 and not exact
        if one.kind in weak and other.kind not in weak and not number_as_word:
            made = converted(code, one, other.kind)
            return (made, other) if is_left else (other, made)
    if {left.kind, right.kind} == {I64, F64}:
        return converted(code, left, F64), converted(code, right, F64)
    raise LoweringError(f"operands of the types {left.kind} and {right.kind}")


def operation(code: Code, left: Value, symbol: ast.operator, right: Value) -> Value:
    """Return the result of an operation. Raises LoweringError for one that its operands do not have."""
    if left.kind == right.kind == NUMBER and type(symbol) in _OF_NUMBERS:
        return scalar(NUMBER, str(_OF_NUMBERS[type(symbol)](int(left.text), int(right.text))))
    left, right = alike(code, left, right)
    if left.kind in _INTEGERS and isinstance(symbol, ast.FloorDiv | ast.Mod):
        return _divided(code, left, symbol, right)
    if left.kind in _INTEGERS and isinstance(symbol, ast.LShift | ast.RShift):
        right = _places(code, right)
    if left.kind == I64 and isinstance(symbol, ast.Div):
        left, right = converted(code, left, F64), converted(code, right, F64)
    if isinstance(symbol, ast.Pow) and F64 in (left.kind, right.kind):
        return mathematics(code, "pow", [left, right])
    name = _OF_TYPE.get(str(left.kind), {}).get(type(symbol))
    if name is None:
        raise LoweringError(f"operation {type(symbol).__name__} on {left.kind}")
    return code.value(left.kind, f"{name} {llvm_type(left.kind)} {left.text}, {right.text}")


def _places(code: Code, count: Value) -> Value:
    """Return how far to shift: only the low six bits count, as processors do it, so that every count is defined."""
    if not _is_constant(count):
        return code.value(count.kind, f"and i64 {count.text}, 63")
    if not 0 <= int(count.text) < 64:
        raise LoweringError(f"a shift by {count.text} bits")
    return count


def _divided(code: Code, left: Value, symbol: ast.operator, right: Value) -> Value:
    """Return a quotient or a remainder; both are 0 where the divisor is.

    A processor ends the process there, and for the lowest signed number divided by -1.
    """
    wants_quotient, is_constant = isinstance(symbol, ast.FloorDiv), _is_constant(right)
    if is_constant and right.text == "0":
        raise LoweringError("a division by 0")
    is_zero = code.value(BOOL, f"icmp eq i64 {right.text}, 0").text
    divisor = right if is_constant else code.value(right.kind, f"select i1 {is_zero}, i64 1, i64 {right.text}")
    if left.kind == U64:
        made = code.value(U64, f"{'udiv' if wants_quotient else 'urem'} i64 {left.text}, {divisor.text}")
    else:
        is_minus_one = code.value(BOOL, f"icmp eq i64 {divisor.text}, -1").text
        divisor = code.value(I64, f"select i1 {is_minus_one}, i64 1, i64 {divisor.text}")
        made = _floored(code, left, divisor, wants_quotient=wants_quotient)
        if wants_quotient:
            opposite = code.value(I64, f"sub i64 0, {left.text}")
            made = code.value(I64, f"select i1 {is_minus_one}, i64 {opposite.text}, i64 {made.text}")
    return made if is_constant else code.value(left.kind, f"select i1 {is_zero}, i64 0, i64 {made.text}")


def _is_constant(value: Value) -> bool:
    return value.text.lstrip("-").isdecimal()


def _floored(code: Code, left: Value, right: Value, *, wants_quotient: bool) -> Value:
    """Return the quotient of signed numbers rounded down, or the remainder, which has the divisor's sign."""
    remainder = code.value(I64, f"srem i64 {left.text}, {right.text}")
    signs = code.value(I64, f"xor i64 {remainder.text}, {right.text}")
    differ = code.value(BOOL, f"icmp slt i64 {signs.text}, 0")
    is_some = code.value(BOOL, f"icmp ne i64 {remainder.text}, 0")
    is_off = code.value(BOOL, f"and i1 {differ.text}, {is_some.text}")
    if not wants_quotient:
        more = code.value(I64, f"select i1 {is_off.text}, i64 {right.text}, i64 0")
        return code.value(I64, f"add i64 {remainder.text}, {more.text}")
    quotient = code.value(I64, f"sdiv i64 {left.text}, {right.text}")
    return code.value(I64, f"sub i64 {quotient.text}, {converted(code, is_off, I64).text}")


def comparison(code: Code, left: Value, symbol: ast.cmpop, right: Value) -> Value:
    """Return whether a comparison holds."""
    name = _COMPARISONS.get(type(symbol))
    if name is None:
        raise LoweringError(f"comparison {type(symbol).__name__}")
    for one, other in ((left, right), (right, left)):
        if one.kind == NUMBER and int(one.text) < 0 and other.kind == U64:
            raise LoweringError(f"a comparison of a u64 with {one.text}")
    left, right = alike(code, left, right, exact=True)
    if left.kind == F64:
        return code.value(BOOL, f"fcmp {'u' if name == 'ne' else 'o'}{name} double {left.text}, {right.text}")
    sign = "" if name in ("eq", "ne") else "s" if left.kind == I64 else "u"
    return code.value(BOOL, f"icmp {sign}{name} {llvm_type(left.kind)} {left.text}, {right.text}")


def lesser(code: Code, left: Value, right: Value) -> Value:
    """Return the lesser of two values, the left one where neither is, as Python does."""
    return _chosen(code, ast.Lt(), left, right)


def greater(code: Code, left: Value, right: Value) -> Value:
    """Return the greater of two values, the left one where neither is, as Python does."""
    return _chosen(code, ast.Gt(), left, right)


def absolute(code: Code, value: Value) -> Value:
    """Return a number without its sign."""
    value = typed(value)
    if value.kind == F64:
        return code.value(F64, f"call double @llvm.fabs.f64(double {value.text})")
    if value.kind != I64:
        raise LoweringError(f"abs of a {value.kind}")
    return greater(code, value, negative(code, value))


def negative(code: Code, value: Value) -> Value:
    """Return a number with the other sign."""
    if value.kind == F64:
        return code.value(F64, f"fneg double {value.text}")
    return operation(code, scalar(NUMBER, "0"), ast.Sub(), value)


def mathematics(code: Code, name: str, values: list[Value]) -> Value:
    """Return what a function of floating-point numbers gives."""
    symbol = f"llvm.{name}.f64"
    arguments = ", ".join(f"double {converted(code, value, F64).text}" for value in values)
    return code.value(F64, f"call double @{symbol}({arguments})")


def _chosen(code: Code, symbol: ast.cmpop, left: Value, right: Value) -> Value:
    left, right = alike(code, left, right)
    second, kind = comparison(code, right, symbol, left), llvm_type(left.kind)
    return code.value(left.kind, f"select i1 {second.text}, {kind} {right.text}, {kind} {left.text}")
