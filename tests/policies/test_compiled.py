"""Loops do the same interpreted and compiled."""

from collections.abc import Iterator
from unittest.mock import patch

import pytest
from hypothesis import given, settings

from policies import compiled
from policies.compiled import Loop
from policies.crux.policy import crux
from policies.snapshot import Snapshot
from tests.policies.builders import snapshots


@pytest.fixture(autouse=True)
def _process_that_decides_once() -> Iterator[None]:
    """Another test may have made this process one that goes on deciding."""
    with patch.object(Loop, "_is_compiled_however_short", False):
        yield


@settings(max_examples=25, deadline=None)
@given(snapshots())
def test_plans_are_the_same_to_the_bit(snapshot: Snapshot) -> None:
    with patch.object(compiled, "LONG_STEPS", 0):
        fast = crux(snapshot)
    with patch.object(compiled, "LONG_STEPS", float("inf")):
        assert crux(snapshot) == fast


@pytest.mark.parametrize(("steps", "is_compiled"), [(compiled.LONG_STEPS - 1, False), (compiled.LONG_STEPS, True)])
def test_only_long_loops_are_compiled(steps: int, is_compiled: bool) -> None:
    machine_code = object()
    with patch.object(Loop, "compiled", machine_code):
        assert (Loop(abs).of(steps) is machine_code) == is_compiled


def test_a_process_that_goes_on_deciding_compiles_short_loops_too() -> None:
    machine_code = object()
    with patch.object(Loop, "compiled", machine_code):
        Loop.compile_all()
        assert Loop(abs).of(1) is machine_code
