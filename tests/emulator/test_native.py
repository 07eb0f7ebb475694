"""The compiler of machine code, and its cache."""

import ctypes
import operator as operators
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from emulator.native import machine
from emulator.native.callable import Entry
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


@given(words=st.lists(st.sampled_from([0, 1, 9]), max_size=9), first=st.integers(0, 5))
def test_loops_and_conditions_do_what_python_does(words: list[int], first: int) -> None:
    assert _LOOP(np.array(words, dtype=np.uint64), first) == _reference(words, first)


def test_a_negative_index_counts_from_the_end() -> None:
    function = _function("def f(rows, index):\n    rows[index, 1] += 5\n    return rows[index, 1]\n")
    rows = np.arange(6, dtype=np.int64).reshape(3, 2)
    assert function(rows, -1) == 10
    assert rows.tolist() == [[0, 1], [2, 3], [4, 10]]


@pytest.mark.parametrize(
    ("source", "why"),
    [
        ("def f(a, b):\n    return a + 1\n", "f: operands of the types u64 and number"),
        ("def f(a, b):\n    return a + np.int64(b)\n", "f: operands of the types u64 and i64"),
        ("def f(a, b):\n    return unknown(a)\n", "f: function 'unknown'"),
        ("def f(a, b):\n    return other\n", "f: name 'other'"),
        ("def f(a, b):\n    with a:\n        return b\n", "f: statement"),
        ("def f(a, b):\n    c = a\n    c = True if b else 1.5\n    return c\n", "f: a f64 as bool"),
        ("def f(a):\n    return a\n", "f: 2 arguments for 1 parameters"),
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
