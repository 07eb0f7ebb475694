"""Arithmetic on values of more than 64 bits: tuples of words, lowest first, and the functions that compute with them.

Compiled code calls ``wide_OPERATION_N`` for values of N words; ``wide_functions`` defines the functions that it calls.
All of them take and return N words modulo 2^(64 N).
"""

import re
from collections.abc import Callable

from emulator.compiler.functions import Function
from emulator.compiler.layout import UnsupportedError

MAX_WORDS = 64
"""Maximum words of a value; larger ones are refused."""

_CALL = re.compile(r"\bwide_([a-z][a-z0-9_]*?)_(\d+)\(")


def call(operation: str, num_words: int, *operands: str) -> str:
    """Return a call of an operation on values of ``num_words``. Raises UnsupportedError above MAX_WORDS."""
    if num_words > MAX_WORDS:
        raise UnsupportedError(f"a value of more than {64 * MAX_WORDS} bits")
    return f"wide_{operation}_{num_words}({', '.join(operands)})"


def constant_words(value: int, num_words: int) -> str:
    """Return a constant."""
    parts = ", ".join(f"U({value >> 64 * number & (1 << 64) - 1:#x})" for number in range(num_words))
    return f"({parts})" if num_words > 1 else parts


def resized(source: str, before: int, after: int, *, signed: bool = False) -> str:
    """Return the same value in another number of words; a signed one keeps its sign."""
    if after == before:
        return source
    if after == 1:
        return f"{source}[0]"
    if after < before:
        return f"{source}[:{after}]"
    operation = "extend_signed" if signed else "extend"
    return call(f"{operation}_to_{after}_from", before, source)


def wide_functions(body: str) -> list[Function]:
    """Return the definitions of all functions that a piece of source calls, callees first."""
    made: dict[str, Function] = {}

    def require(source: str) -> None:
        for operation, num_words in _CALL.findall(source):
            name = f"wide_{operation}_{num_words}"
            if name not in made:
                function = _function(name, operation, int(num_words))
                require("\n".join(function.lines))
                made[name] = function

    require(body)
    return list(made.values())


def _function(name: str, operation: str, count: int) -> Function:
    if operation.startswith("extend"):
        kind, after = operation.removesuffix("_from").rsplit("_to_", 1)
        return Function(name, "a", _extend(count, int(after), kind == "extend_signed"))
    parameters, lines = _OPERATIONS[operation]
    return Function(name, parameters, lines(count))


def _each(count: int, part: str) -> list[str]:
    """Return a result whose words are one expression of ``a[I]`` and ``b[I]``."""
    return [f"return ({', '.join(part.replace('[I]', f'[{number}]') for number in range(count))},)"]


def _carrying(count: int, first: str, wraps: str, second: str, wraps_too: str) -> list[str]:
    """Return a word-by-word computation with a carry from each word to the next."""
    lines = ["carry = U(0)"]
    for number in range(count):
        lines += [
            f"part = {first}".replace("[I]", f"[{number}]"),
            f"r{number} = {second}",
            f"carry = U(1) if {wraps} or {wraps_too} else U(0)".replace("[I]", f"[{number}]").replace(
                "rI", f"r{number}"
            ),
        ]
    return [*lines, _result(count)]


def _result(count: int) -> str:
    return f"return ({', '.join(f'r{number}' for number in range(count))},)"


def _add(count: int) -> list[str]:
    return _carrying(count, "a[I] + b[I]", "part < a[I]", "part + carry", "rI < part")


def _subtract(count: int) -> list[str]:
    return _carrying(count, "a[I] - b[I]", "a[I] < b[I]", "part - carry", "part < rI")


def _multiply(count: int) -> list[str]:
    lines = [f"r{number} = U(0)" for number in range(count)]
    for left in range(count):
        lines.append("carry = U(0)")
        for right in range(count - left):
            at = left + right
            lines += [
                f"low = a[{left}] * b[{right}]",
                f"sum_ = r{at} + low",
                f"r{at} = sum_ + carry",
                f"carry = multiply_high(a[{left}], b[{right}]) + (U(1) if sum_ < low else U(0)) "
                f"+ (U(1) if r{at} < sum_ else U(0))",
            ]
    return [*lines, _result(count)]


def _shift_left(count: int) -> list[str]:
    lines = [f"whole = np.int64(min(bits, U({64 * count})) >> U(6))", "part = bits & U(63)"]
    for number in range(count):
        lines += [
            f"high = a[{number} - whole] if whole <= {number} else U(0)",
            f"low = a[{number} - 1 - whole] if whole < {number} else U(0)",
            f"r{number} = high << part | (low >> (U(64) - part) if part != U(0) else U(0))",
        ]
    return [*lines, _result(count)]


def _shift_right(count: int, filling: str) -> list[str]:
    lines = [f"fill = {filling}", f"whole = np.int64(min(bits, U({64 * count})) >> U(6))", "part = bits & U(63)"]
    for number in range(count):
        lines += [
            f"low = a[{number} + whole] if whole < {count - number} else fill",
            f"high = a[{number + 1} + whole] if whole < {count - number - 1} else fill",
            f"r{number} = low >> part | (high << (U(64) - part) if part != U(0) else U(0))",
        ]
    return [*lines, _result(count)]


def _sign(count: int) -> str:
    return f"U({(1 << 64) - 1:#x}) if a[{count - 1}] >> U(63) != U(0) else U(0)"


def _less(count: int) -> list[str]:
    lines = []
    for number in range(count - 1, 0, -1):
        lines += [f"if a[{number}] != b[{number}]:", f"    return a[{number}] < b[{number}]"]
    return [*lines, "return a[0] < b[0]"]


def _less_signed(count: int) -> list[str]:
    top = count - 1
    return [
        f"if (a[{top}] ^ b[{top}]) >> U(63) != U(0):",
        f"    return a[{top}] >> U(63) != U(0)",
        f"return wide_less_{count}(a, b)",
    ]


def _clamp(count: int, less: str) -> list[str]:
    return [
        f"if wide_{less}_{count}(a, lowest):",
        "    return lowest",
        f"if wide_{less}_{count}(highest, a):",
        "    return highest",
        "return a",
    ]


def _extend(count: int, after: int, signed: bool) -> list[str]:
    words = ["a"] if count == 1 else [f"a[{number}]" for number in range(count)]
    fill = f"U({(1 << 64) - 1:#x}) if {words[-1]} >> U(63) != U(0) else U(0)" if signed else "U(0)"
    return [f"fill = {fill}", f"return ({', '.join(words + ['fill'] * (after - count))},)"]


_OPERATIONS: dict[str, tuple[str, Callable[[int], list[str]]]] = {
    "add": ("a, b", _add),
    "subtract": ("a, b", _subtract),
    "multiply": ("a, b", _multiply),
    "and": ("a, b", lambda count: _each(count, "a[I] & b[I]")),
    "or": ("a, b", lambda count: _each(count, "a[I] | b[I]")),
    "xor": ("a, b", lambda count: _each(count, "a[I] ^ b[I]")),
    "invert": ("a", lambda count: _each(count, "~a[I]")),
    "shift_left": ("a, bits", _shift_left),
    "shift_right": ("a, bits", lambda count: _shift_right(count, "U(0)")),
    "shift_right_signed": ("a, bits", lambda count: _shift_right(count, _sign(count))),
    "equal": ("a, b", lambda count: [f"return {' and '.join(f'a[{n}] == b[{n}]' for n in range(count))}"]),
    "less": ("a, b", _less),
    "less_signed": ("a, b", _less_signed),
    "clamp": ("a, lowest, highest", lambda count: _clamp(count, "less")),
    "clamp_signed": ("a, lowest, highest", lambda count: _clamp(count, "less_signed")),
    "index": (
        "a",
        lambda count: [
            f"return a[0] if {' and '.join(f'a[{n}] == U(0)' for n in range(1, count))} else U({(1 << 64) - 1:#x})"
        ],
    ),
}
