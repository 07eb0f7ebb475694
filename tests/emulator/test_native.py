"""The compiler of machine code, and its cache."""

import ctypes
import math
import operator as operators
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from emulator.native import machine
from emulator.native.callable import CompiledFunction, Entry, separate_arrays
from emulator.native.code import LoweringError
from emulator.native.machine import MachineCode
from emulator.native.module import generated

_MASK = (1 << 64) - 1
_WORDS = st.integers(0, _MASK) | st.integers(0, 70)
_SIGNED = st.integers(-(1 << 63), (1 << 63) - 1) | st.integers(-70, 70)

_TEXT = """
define i64 @answer() {
  ret i64 NUMBER
}
"""


def _function(source: str, **known: Any) -> Entry:
    (function,) = generated(source, known).values()
    return Entry(function)


_PYTHON: dict[str, Callable[[int, int], int]] = {
    "+": operators.add,
    "-": operators.sub,
    "*": operators.mul,
    "&": operators.and_,
    "|": operators.or_,
    "^": operators.xor,
}
_OF_WORDS = {operator: _function(f"def f(a, b):\n    return a {operator} b\n") for operator in _PYTHON}
_OF_SIGNED = {operator: _function(f"def f(a, b):\n    return a {operator} b\n") for operator in ("//", "%")}
_OF_FRACTIONS = {
    text: _function(f"def f(a, b):\n    return {text}\n", math=math)
    for text in (
        "a + b",
        "a - b",
        "a * b",
        "b / a",
        "-b",
        "abs(b)",
        "min(a, b)",
        "min(b, a)",
        "max(a, b)",
        "max(b, a)",
        "a ** 0.5",
        "a ** 2",
        "math.sqrt(a)",
        "math.log(a)",
        "math.log2(a)",
        "math.exp(a / 10)",
        "math.pow(a, 1.5)",
        "math.fabs(b)",
        "math.floor(a)",
        "math.ceil(a)",
        "1 if a > b else b",
        "float('inf')",
        "b if b == b else 0.0",
    )
}
_LOOP = _function(
    """
def f(words, first):
    total = np.int64(0)
    for index in range(len(words) - 1, -1, -1):
        if words[index] == np.uint64(0):
            continue
        if words[index] == np.uint64(9):
            break
        total += index if first <= index < 4 else 100
    return total
"""
)


def _reference(words: list[int], first: int) -> int:
    total = 0
    for index in range(len(words) - 1, -1, -1):
        if words[index] == 0:
            continue
        if words[index] == 9:
            break
        total += index if first <= index < 4 else 100
    return total


@given(left=_WORDS, right=_WORDS)
def test_words_are_computed_with_modulo_two_to_the_64(left: int, right: int) -> None:
    for operator, function in _OF_WORDS.items():
        expected = _PYTHON[operator](left, right) & _MASK
        assert function(np.uint64(left), np.uint64(right)) == expected


@given(left=_SIGNED, right=st.integers(1, 1000) | st.integers(-1000, -2))
def test_signed_numbers_are_divided_as_in_python(left: int, right: int) -> None:
    assert _OF_SIGNED["//"](left, right) == left // right
    assert _OF_SIGNED["%"](left, right) == left % right


def test_divisions_that_would_end_the_process_have_a_result() -> None:
    lowest = -(1 << 63)
    assert [_OF_SIGNED["//"](left, right) for left, right in ((7, 0), (7, -1), (lowest, -1))] == [0, -7, lowest]
    assert [_OF_SIGNED["%"](left, right) for left, right in ((7, 0), (7, -1), (lowest, -1))] == [0, 0, 0]
    assert [_OF_SIGNED[operator](np.uint64(7), np.uint64(0)) for operator in ("//", "%")] == [0, 0]


def test_only_the_low_six_bits_of_a_count_shift() -> None:
    left, right = (_function(f"def f(a, b):\n    return a {operator} b\n") for operator in ("<<", ">>"))
    assert [left(3, 65), right(-8, 66), right(np.uint64(9), np.uint64(64))] == [6, -2, 9]


def test_what_may_change_an_item_is_called_after_the_item_is_read() -> None:
    made = generated(
        "def more(a):\n    a[0] += 10\n    return 1\n\ndef f(a):\n    a[0] += more(a)\n    return a[0]\n", {}
    )
    assert Entry(made["f"])(np.zeros(1, dtype=np.int64)) == 1


@pytest.mark.parametrize(
    ("test", "calls"), [("0 < a[1] < more(a)", 0), ("0 <= a[1] < more(a)", 1), ("more(a) in (3, 4, 5)", 1)]
)
def test_conditions_make_the_calls_that_python_makes(test: str, calls: int) -> None:
    made = generated(f"def more(a):\n    a[0] += 1\n    return 1\n\ndef f(a):\n    b = {test}\n    return a[0]\n", {})
    assert Entry(made["f"])(np.zeros(2, dtype=np.int64)) == calls


def test_a_truth_value_is_inverted_as_a_number() -> None:
    assert _function("def f(a):\n    return ~(a > 1)\n")(2) == ~True


def test_a_field_of_a_variable_precedes_a_constant_of_a_module_of_that_name() -> None:
    function = _function("def f(math):\n    return math.pi[0]\n", math=math)
    assert function(Angles(np.array([7], dtype=np.int64))) == 7


@given(words=st.lists(st.sampled_from([0, 1, 9]), max_size=9), first=st.integers(0, 5))
def test_loops_and_conditions_do_what_python_does(words: list[int], first: int) -> None:
    assert _LOOP(np.array(words, dtype=np.uint64), first) == _reference(words, first)


def test_a_negative_index_counts_from_the_end() -> None:
    function = _function("def f(rows, index):\n    rows[index, 1] += 5\n    return rows[index, 1]\n")
    rows = np.arange(6, dtype=np.int64).reshape(3, 2)
    assert function(rows, -1) == 10
    assert rows.tolist() == [[0, 1], [2, 3], [4, 10]]


class Angles(NamedTuple):
    """An array with the name of a constant of a module."""

    pi: np.ndarray[Any, Any]


class Point(NamedTuple):
    """What a function gives back, or takes."""

    number: int
    share: float


@separate_arrays(views={"view": "rows"}, signed={"signed"}, resized={"rows"})
class Arrays(NamedTuple):
    """Arrays of which two are one memory."""

    rows: np.ndarray[Any, Any]
    view: np.ndarray[Any, Any]
    signed: np.ndarray[Any, Any]


def _arrays(columns: int) -> Arrays:
    rows = np.arange(4 * columns, dtype=np.int64).reshape(4, columns)
    return Arrays(rows, rows.reshape(-1).view(np.uint8), np.arange(5, dtype=np.int64))


def test_records_of_numbers_are_made_returned_and_renewed() -> None:
    made = generated(
        """
def point(number, share):
    return Point(number, share / 2)

def f(number, share, again):
    found = point(number, share)
    if again:
        found = Point(found.number + 1, found.share * 8)
    return found.share + found.number
""",
        {"Point": Point},
    )
    function = Entry(made["f"])
    assert function(3, 5.0, False) == 5.5
    assert function(3, 5.0, True) == 24.0


def test_variables_of_enclosing_functions_and_names_of_modules_are_seen() -> None:
    step = 7

    def f(word: int) -> float:
        return word + step + math.pi

    assert CompiledFunction(f)(1) == 8 + math.pi


def test_an_array_that_a_call_returns_is_computed_once() -> None:
    made = generated(
        "def g(a):\n    a[0] += 1\n    return a\n\ndef f(a):\n    g(a)[1] = 7\n    return g(a)[0] + g(a)[1]\n", {}
    )
    array = np.zeros(2, dtype=np.int64)
    assert (Entry(made["f"])(array), array.tolist()) == (2 + 7, [3, 7])


@given(value=st.floats(1e-3, 1e3), other=st.floats(-1e3, 1e3) | st.just(math.nan))
def test_fractions_are_computed_as_in_python(value: float, other: float) -> None:
    for text, function in _OF_FRACTIONS.items():
        expected = eval(text, {"a": value, "b": other, "math": math})
        assert function(value, other) == pytest.approx(expected, rel=1e-12, nan_ok=True), text


def test_a_variable_and_a_result_may_become_fractions() -> None:
    function = _function("def f(a):\n    b = 0\n    if a > 1:\n        return 2\n    b = a / 2\n    return b\n")
    assert (function(5.0), function(0.5)) == (2.0, 0.25)


@pytest.mark.usefixtures("folder")
def test_rows_of_any_size_are_served_by_the_same_code(compiled: list[str]) -> None:
    function = _function("def f(arrays, row):\n    return arrays.rows[row, 1] + len(arrays.rows)\n")
    assert [function(_arrays(columns), 2) for columns in (3, 5)] == [11, 15]
    assert len(compiled) == 1


def test_views_of_one_memory_are_known_to_overlap_and_signed_arrays_to_have_an_end() -> None:
    function = _function(
        """
def f(arrays, last):
    arrays.rows[0, 0] = 1
    arrays.view[0] = 9
    arrays.signed[last] += 1
    return arrays.rows[0, 0]
"""
    )
    arrays = _arrays(2)
    assert function(arrays, -1) == 9
    assert arrays.signed.tolist() == [0, 1, 2, 3, 5]


@pytest.mark.parametrize(
    ("source", "why"),
    [
        ("def f(a, b):\n    return a + 1\n", "f: operands of the types u64 and number"),
        ("def f(a, b):\n    return a + np.int64(b)\n", "f: operands of the types u64 and i64"),
        ("def f(a, b):\n    return unknown(a)\n", "f: function 'unknown'"),
        ("def f(a, b):\n    return other\n", "f: name 'other'"),
        ("def f(a, b):\n    with a:\n        return b\n", "f: statement"),
        ("def f(a, b):\n    c = a\n    c = True if b else 1.5\n    return c\n", "f: a f64 as bool"),
        ("def f(a, b):\n    return a > -1\n", "f: a comparison of a u64 with -1"),
        ("def f(a, b):\n    return np.int64(a) + (1 << 63)\n", "f: 9223372036854775808 as a signed number"),
        ("def f(a, b):\n    return np.int64(a) << 64\n", "f: a shift by 64 bits"),
        ("def f(a, b):\n    return np.int64(a) // 0\n", "f: a division by 0"),
        ("def f(a):\n    return a\n", "f: 2 arguments for 1 parameters"),
        ("def f(a, *, b):\n    return a\n", "f: 2 arguments for 1 parameters"),
        ("def f(a, b, *c):\n    return a\n", "f: parameters 'a, b, .c'"),
        ("def f(a, b):\n    return max(a, b, key=a)\n", "f: expression 'max.a, b, key=a.'"),
        ("def f(a, b):\n    return a and b\n", "f: the value of 'a and b'"),
        ("def f(a, b):\n    if a > b:\n        return a\n", ":1: f: an end without a result|:3: f: an end"),
        ("def f(a, b):\n    c = a\n\n    return c + 1.5\n", "generated source:4: f: operands of the types u64 and f64"),
    ],
)
def test_what_the_compiler_does_not_know_is_refused_by_name(source: str, why: str) -> None:
    with pytest.raises(LoweringError, match=why):
        _function(source)(np.uint64(1), np.uint64(2))


@pytest.fixture(name="folder")
def _folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("TRAINYARD_CACHE", str(tmp_path))
    return tmp_path / "programs"


@pytest.fixture(name="compiled")
def _compiled(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The texts that are compiled and not loaded."""
    texts: list[str] = []
    compile_text: Callable[[str], bytes] = machine._compiled

    def recorded(text: str) -> bytes:
        texts.append(text)
        return compile_text(text)

    monkeypatch.setattr(machine, "_compiled", recorded)
    return texts


def _answer(number: int) -> int:
    code = MachineCode(_TEXT.replace("NUMBER", str(number)))
    return int(ctypes.CFUNCTYPE(ctypes.c_int64)(code.address("answer"))())


def test_what_did_not_change_is_loaded_and_what_changed_is_compiled(folder: Path, compiled: list[str]) -> None:
    assert [_answer(1), _answer(2), _answer(1), _answer(2)] == [1, 2, 1, 2]
    assert len(compiled) == 2
    assert len(list(folder.iterdir())) == 2


def test_another_processor_has_machine_code_of_its_own(
    folder: Path, compiled: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    _answer(1)
    triple, name, features = machine._processor()
    monkeypatch.setattr(machine, "_processor", lambda: (triple, name, f"{features},+other"))
    monkeypatch.setattr(
        machine, "_compiled", lambda text: compiled.append(text) or next(folder.iterdir()).read_bytes()[32:]
    )
    _answer(1)
    assert len(compiled) == 2


@pytest.mark.parametrize(
    "damage",
    [lambda _: b"", lambda content: content[:-9], lambda content: content[:99] + b"?" + content[100:]],
)
def test_a_damaged_file_is_compiled_anew(damage: Callable[[bytes], bytes], folder: Path, compiled: list[str]) -> None:
    assert _answer(3) == 3
    (path,) = folder.iterdir()
    whole = path.read_bytes()
    path.write_bytes(damage(whole))
    assert _answer(3) == 3
    assert path.read_bytes() == whole
    assert len(compiled) == 2


def test_machine_code_needs_no_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "file").write_text("no folder")
    monkeypatch.setenv("TRAINYARD_CACHE", str(tmp_path / "file"))
    assert _answer(4) == 4


def test_processes_that_compile_the_same_at_once_do_not_disturb_each_other(folder: Path) -> None:
    script = "from tests.emulator.test_native import _answer\nprint(sum(_answer(number) for number in range(20)))\n"
    command = [sys.executable, "-c", script]
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    processes = [subprocess.Popen(command, stdout=subprocess.PIPE, env=environment, text=True) for _ in range(3)]
    assert [process.communicate()[0].strip() for process in processes] == ["190"] * 3
    assert sorted({path.suffix for path in folder.iterdir()}) == [".o"]
    assert len(list(folder.iterdir())) == 20
