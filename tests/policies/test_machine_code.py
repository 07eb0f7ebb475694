"""Machine code on disk is used again as long as nothing that it was made of has changed, wherever that stands."""

import importlib
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from policies.machine_code import ingredients

LOOP = """
from policies.machine_code import compiled
from callee import FACTOR, added
@compiled
def run(number):
    return FACTOR * added(number)
"""
CALLEE = """
from policies.machine_code import compiled
from deeper import one
FACTOR = 10
@compiled
def added(number):
    return number + one()
"""
DEEPER = """
from policies.machine_code import compiled
@compiled
def one():
    return 1
"""


@pytest.fixture
def load(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., Any]:
    """Writes modules, and gives the loop as a new process would have it."""
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setattr(sys, "dont_write_bytecode", True)  # it would be taken for that of a file changed at once

    def load(**sources: str) -> Any:
        for name, source in sources.items():
            (tmp_path / f"{name}.py").write_text(source)
        for name in ("loop", "callee", "deeper"):
            monkeypatch.delitem(sys.modules, name, raising=False)
        importlib.invalidate_caches()
        return importlib.import_module("loop").run

    return load


def test_what_has_not_changed_is_not_compiled_again(load: Callable[..., Any]) -> None:
    run = load(loop=LOOP, callee=CALLEE, deeper=DEEPER)
    assert (run(2), sum(run.stats.cache_hits.values())) == (30, 0)
    again = load()
    assert (again(2), sum(again.stats.cache_hits.values())) == (30, 1)


def test_a_change_in_any_file_that_the_loop_is_made_of_is_seen(load: Callable[..., Any]) -> None:
    assert load(loop=LOOP, callee=CALLEE, deeper=DEEPER)(2) == 30
    assert load(deeper=DEEPER.replace("return 1", "return 5"))(2) == 70
    assert load(callee=CALLEE.replace("number + one()", "number - one()"))(2) == -30
    assert load(callee=CALLEE.replace("FACTOR = 10", "FACTOR = 100"))(2) == 700
    # What it was before is still there.
    before = load(callee=CALLEE, deeper=DEEPER)
    assert (before(2), sum(before.stats.cache_hits.values())) == (30, 1)


def test_what_cannot_be_compared_is_refused(load: Callable[..., Any]) -> None:
    run = load(loop=LOOP, callee=CALLEE, deeper=DEEPER).py_func
    run.__globals__["FACTOR"] = np.arange(3)
    with pytest.raises(TypeError, match=r"loop\.run reads FACTOR"):
        ingredients(run)
