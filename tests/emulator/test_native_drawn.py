"""Machine code and Python give the same for functions that are drawn: expressions, statements and side effects."""

import os
from collections.abc import Iterator
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
import pytest

from emulator.native.callable import Entry
from emulator.native.module import generated

_ITEMS = 8
_NAMES = ("a", "b", "c")
_TICK = """
def tick(x, y):
    x[0] += 1
    return y + x[0]
"""
"""A call with a side effect: what it gives tells whether, when and how often it was made."""


@pytest.fixture(scope="module", autouse=True)
def _folder(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """Keep the cache of the user clean."""
    with pytest.MonkeyPatch.context() as patch:
        path = tmp_path_factory.mktemp("cache")
        patch.setitem(os.environ, "TRAINYARD_CACHE", str(path))
        yield path


_FORMS = (
    *(f"({{one}} {symbol} {{other}})" for symbol in "+-*&|^"),
    "(({one} & 255) << ({other} & 7))",
    "({one} >> ({other} & 31))",
    "({one} // (({other} & 7) + 1))",
    "({one} % (({other} & 7) - 9))",
    "(-{one})",
    "(~{one})",
    "abs({one})",
    "min({one}, {other})",
    "max({one}, {other}, 5)",
    "({one} if {test} else {other})",
    "(({test}) + {one})",
    "(~({test}) & {one})",
    "int(({one} & 1023) / 4 + 0.25)",
    "tick(x, {one} & 255)",
    "x[{one} & 7]",
    "int(y[{one} & 7])",
)
_TESTS = (
    "{one} < {other}",
    "{one} != {other}",
    "{one} < {other} <= {third}",
    "{one} >= {other} != tick(x, 3)",
    "{one} in ({other}, {third}, 1)",
    "tick(x, 3) not in ({other}, {third})",
)
_COMBINED = ("({test}) and ({second})", "({test}) or ({second})", "not ({test})", "({test} and {second} or {one} < 3)")


def _number(random: Random, depth: int) -> str:
    """Draw an integer expression."""
    if depth == 0:
        return random.choice([*_NAMES, "0", "1", "-3", "77", "x[0]", "x[a & 7]", "len(x)", "int(y[b & 7])"])
    form = random.choice(_FORMS)
    test = _condition(random, 0) if "{test}" in form else ""
    return form.format(one=_number(random, depth - 1), other=_number(random, depth - 1), test=test)


def _condition(random: Random, depth: int) -> str:
    if depth and random.random() < 0.5:
        test, second = _condition(random, depth - 1), _condition(random, depth - 1)
        return random.choice(_COMBINED).format(test=test, second=second, one=_number(random, 0))
    one, other, third = (_number(random, random.randint(0, 1)) for _ in range(3))
    return random.choice(_TESTS).format(one=one, other=other, third=third)


def _block(random: Random, depth: int, in_loop: bool) -> list[str]:
    return [line for _ in range(random.randint(1, 3)) for line in _statement(random, depth, in_loop)]


def _indented(lines: list[str]) -> list[str]:
    return [f"    {line}" for line in lines]


def _statement(random: Random, depth: int, in_loop: bool) -> list[str]:
    name, other = random.choice(_NAMES), random.choice(_NAMES)
    value, index = _number(random, random.randint(0, 2)), _number(random, 1)
    symbol = random.choice(["+", "-", "^", "|"])
    kinds = ["assign", "add", "item", "add to item", "byte", "swap", "two", "chain"]
    if depth:
        kinds += ["if", "else", "for", "down", "while", "return"]
    if in_loop:
        kinds += ["break", "continue"]
    match random.choice(kinds):
        case "assign":
            return [f"{name} = ({value}) & 0xFFFF"]
        case "add":
            return [f"{name} {symbol}= {value} & 0xFFF", f"{name} &= 0xFFFF"]
        case "item":
            return [f"x[{index} & 7] = {value} & 0xFFFF"]
        case "add to item":
            return [f"x[{index} & 7] {symbol}= {value} & 0xFFF", "x[0] &= 0xFFFF"]
        case "byte":
            return [f"y[{index} & 7] = {value} & 0xFF"]
        case "swap":
            return [f"{name}, {other} = {other}, {name}", f"x[1], x[{name} & 7] = x[{other} & 7], {name}"]
        case "two":
            return [f"{name}, {other} = ({value}) & 0xFFFF, {name}"]
        case "chain":
            return [f"{name} = x[{index} & 7] = ({value}) & 0xFFFF"]
        case "if":
            return [f"if {_condition(random, 1)}:", *_indented(_block(random, depth - 1, in_loop))]
        case "else":
            first = [f"if {_condition(random, 1)}:", *_indented(_block(random, depth - 1, in_loop))]
            second = [f"elif {_condition(random, 0)}:", *_indented(_block(random, depth - 1, in_loop))]
            return [*first, *second, "else:", *_indented(_block(random, depth - 1, in_loop))]
        case "for":
            return [f"for {name} in range({other} & 7):", *_indented(_block(random, depth - 1, True))]
        case "down":
            return [f"for {name} in range({other} & 15, {index} & 3, -2):", *_indented(_block(random, depth - 1, True))]
        case "while":
            test = random.choice(["True", f"{name} != {other}", _condition(random, 0)])
            counted = f"n{depth}"
            guard = [f"{counted} += 1", f"if {counted} > 4:", "    break"]
            return [f"{counted} = 0", f"while {test}:", *_indented([*guard, *_block(random, depth - 1, True)])]
        case "return":
            return [f"if {_condition(random, 0)}:", f"    return ({value}) & 0xFFFF"]
        case word:
            return [f"if {_condition(random, 0)}:", f"    {word}"]


def _source(random: Random) -> str:
    lines = _block(random, 3, False) + _block(random, 2, False)
    return "\n".join(["def f(x, y, a, b, c):", *_indented([*lines, "return (a + 3 * b + 5 * c) & 0xFFFFFF"]), ""])


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(100))
def test_drawn_functions_do_what_python_does(seed: int) -> None:
    random, made = Random(seed), dict[str, Any]()
    source, values = _TICK + _source(random), [random.randint(0, 200) for _ in range(3)]
    exec(source, made)
    items, octets = [3 * number for number in range(_ITEMS)], [255 - 30 * number for number in range(_ITEMS)]
    array, octet_array = np.array(items, dtype=np.int64), np.array(octets, dtype=np.uint8)
    found = Entry(generated(source, {})["f"])(array, octet_array, *values)
    expected = made["f"](items, octets, *values)
    assert (found, array.tolist(), octet_array.tolist()) == (expected, items, octets), source
