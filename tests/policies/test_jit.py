"""Kernels give the same results compiled and as plain Python, and cached machine code is used while it is current."""

import importlib
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any
from unittest.mock import patch

import numpy as np
import pytest
from hypothesis import given, settings

from policies import jit
from policies.crux.policy import crux
from policies.jit import Kernel, fingerprint
from policies.snapshot import Snapshot
from tests.policies.builders import snapshots

KERNEL = """
from policies.jit import compiled
from callee import FACTOR, added
@compiled
def run(number):
    return FACTOR * added(number)
"""
CALLEE = """
from policies.jit import compiled
from deeper import one
FACTOR = 10
@compiled
def added(number):
    return number + one()
"""
DEEPER = """
from policies.jit import compiled
@compiled
def one():
    return 1
"""


@settings(max_examples=25, deadline=None)
@given(snapshots())
def test_plans_are_the_same_to_the_bit(snapshot: Snapshot) -> None:
    with patch.object(jit, "MIN_COMPILED_STEPS", 0):
        fast = crux(snapshot)
    with patch.object(jit, "MIN_COMPILED_STEPS", float("inf")):
        assert crux(snapshot) == fast


@pytest.mark.parametrize(
    ("steps", "is_compiled"), [(jit.MIN_COMPILED_STEPS - 1, False), (jit.MIN_COMPILED_STEPS, True)]
)
def test_only_large_kernels_are_compiled(steps: int, is_compiled: bool) -> None:
    machine_code = object()
    with patch.object(Kernel, "compiled", machine_code):
        assert (Kernel(abs).for_steps(steps) is machine_code) == is_compiled


def test_a_process_that_goes_on_deciding_compiles_small_kernels_too() -> None:
    machine_code = object()
    with patch.object(Kernel, "compiled", machine_code):
        Kernel.compile_all()
        assert Kernel(abs).for_steps(1) is machine_code


@pytest.fixture
def load(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., Any]:
    """Return a function that writes modules and loads the kernel as a new process would."""
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setattr(sys, "dont_write_bytecode", True)  # it would be taken for that of a file changed at once

    def load(**sources: str) -> Any:
        for name, source in sources.items():
            (tmp_path / f"{name}.py").write_text(source)
        for name in ("kernel", "callee", "deeper"):
            monkeypatch.delitem(sys.modules, name, raising=False)
        importlib.invalidate_caches()
        return importlib.import_module("kernel").run

    return load


def test_what_has_not_changed_is_not_compiled_again(load: Callable[..., Any]) -> None:
    run = load(kernel=KERNEL, callee=CALLEE, deeper=DEEPER)
    assert (run(2), sum(run.stats.cache_hits.values())) == (30, 0)
    again = load()
    assert (again(2), sum(again.stats.cache_hits.values())) == (30, 1)


def test_a_change_in_any_file_that_the_kernel_is_made_of_is_seen(load: Callable[..., Any]) -> None:
    assert load(kernel=KERNEL, callee=CALLEE, deeper=DEEPER)(2) == 30
    assert load(deeper=DEEPER.replace("return 1", "return 5"))(2) == 70
    assert load(callee=CALLEE.replace("number + one()", "number - one()"))(2) == -30
    assert load(callee=CALLEE.replace("FACTOR = 10", "FACTOR = 100"))(2) == 700
    # What it was before is still there.
    before = load(callee=CALLEE, deeper=DEEPER)
    assert (before(2), sum(before.stats.cache_hits.values())) == (30, 1)


def test_what_cannot_be_compared_is_refused(load: Callable[..., Any]) -> None:
    run = load(kernel=KERNEL, callee=CALLEE, deeper=DEEPER).py_func
    run.__globals__["FACTOR"] = np.arange(3)
    with pytest.raises(TypeError, match=r"kernel\.run reads the global FACTOR"):
        fingerprint(run)
