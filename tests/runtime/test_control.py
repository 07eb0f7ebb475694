"""Conditionals and loops: as Python's, though everything is enqueued beforehand."""

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import runtime as rt
from runtime.program import Call, Input, Output, Value
from tests.patience import PATIENCE_S

BOOL = rt.ArraySpec((), "bool")
same = rt.function(library="numpy", outputs=lambda x: x)
double, add_one, halve = same(lambda x: x * 2), same(lambda x: x + 1), same(lambda x: x / 2)


@rt.function(library="numpy", outputs=BOOL)
def is_small(x: Any) -> Any:
    return (x < 20).all()


def test_guards_that_are_no_predicates_are_refused_by_name() -> None:
    spec, all_of = rt.ArraySpec((2,), "float64"), rt.Sharding(None, 1)
    made = Call(0, "double", 0, (Input(Value(0), all_of),), (Output(spec, all_of),), guards=(True,))
    with pytest.raises(ValueError, match=r"p: double: a guard must be a bool\[\] on every device"):
        rt.Program("p", (spec,), (made,), (Value(1),))


def test_conditions_outside_of_programs_are_refused_by_name() -> None:
    with pytest.raises(ValueError, match="cond: works inside of a program"):
        rt.cond(True, lambda: 0, lambda: 1)  # type: ignore[arg-type]


@pytest.fixture(scope="module")
def runtime() -> Iterator[rt.LocalRuntime]:
    with rt.local(islands=2, hosts=1, devices=2) as started:
        yield started


@pytest.fixture
def slices(runtime: rt.LocalRuntime) -> list[rt.VirtualSlice]:
    devices = runtime.make_virtual_device_set()
    return [devices.add_slice(2, island=f"island-{number}") for number in range(2)]


@pytest.mark.slow
def test_a_conditional_computes_one_branch(slices: list[rt.VirtualSlice]) -> None:
    one, two = slices
    small = rt.pmap(is_small, devices=one, in_axes=None, out_axes=None)
    slow = rt.pmap(rt.timer(60, name="slow"), devices=two)
    fail = rt.pmap(same(lambda x: x["no such thing"]), devices=two)
    here, there = rt.pmap(double, devices=one), rt.pmap(add_one, devices=two)

    @rt.program
    def f(x: Any) -> Any:
        inner = small(here(x))
        y = rt.cond(small(x), lambda x: there(here(x)), lambda x: slow(fail(x)), x)
        z = rt.cond(small(x), lambda x: rt.cond(inner, here, there, x), lambda x: x, x)
        return y, z

    for x, y, z in ((3.0, 7, 6), (11.0, 23, 12)):
        first, second = f(np.array([x, x]))
        assert first.numpy(PATIENCE_S).tolist() == [y, y]
        assert second.numpy(PATIENCE_S).tolist() == [z, z]
    assert "if %9 and %2" in str(f.trace(np.zeros(2)))
    with pytest.raises(rt.ComputationError, match=r"only integers"):
        f(np.array([99.0, 99.0]))[0].wait(PATIENCE_S)


@pytest.mark.slow
def test_a_bounded_loop_ends_where_its_condition_says(runtime: rt.LocalRuntime, slices: list[rt.VirtualSlice]) -> None:
    one, two = slices
    small = rt.pmap(is_small, devices=two, in_axes=None, out_axes=None)
    pause = rt.pmap(rt.timer(0.2, name="pause"), devices=two)
    here, there = rt.pmap(double, devices=one), rt.pmap(add_one, devices=two)

    @rt.program
    def f(x: Any) -> Any:
        state = rt.while_loop(
            lambda state: small(state["x"]),
            lambda state: {"x": there(here(state["x"])), "times": there(state["times"]), "paused": pause(state["x"])},
            {"x": x, "times": np.zeros(2), "paused": np.ones(2)},
            at_most=8,
        )
        return state["x"], state["times"]

    f(np.array([99.0, 99.0]))[0].wait(PATIENCE_S)
    for begin in (0.0, 3.0, 19.0, 99.0):
        x, times = begin, 0
        while x < 20 and times < 8:
            x, times = 2 * x + 1, times + 1
        found, counted = f(np.array([begin, begin]))
        assert (found.numpy(PATIENCE_S).tolist(), counted.numpy(PATIENCE_S).tolist()) == ([x, x], [times, times])
    pauses = [each["dur"] for each in runtime.trace() if each["ph"] == "X" and each["name"] == "pause"]
    assert sum(each > 0 for each in pauses) == 2 * (5 + 3 + 1)  # what the loops above did, on two devices


@pytest.mark.slow
def test_branches_that_do_not_fit_are_refused_by_name(slices: list[rt.VirtualSlice]) -> None:
    one, _ = slices
    here = rt.pmap(double, devices=one)
    small = rt.pmap(is_small, devices=one, in_axes=None, out_axes=None)
    wide = rt.pmap(rt.function(library="numpy", outputs=rt.ArraySpec((4,), "float64"))(lambda x: x), devices=one)
    for branches, says in (
        ((here, wide), r"cond: array 0 is float64\[2\] or float64\[8\]"),
        ((here, lambda x: (here(x), x)), "nested differently"),
        ((lambda x: x, lambda _: np.zeros(2)), "array 0 is computed by no mapped function"),
    ):
        with pytest.raises(ValueError, match=says):
            rt.program(lambda x, branches=branches: rt.cond(small(x), *branches, x)).trace(np.zeros(2))
    with pytest.raises(TypeError, match=r"predicate: expected a traced bool\[\], got float64\[2\]"):
        rt.program(lambda x: rt.cond(here(x), here, here, x)).trace(np.zeros(2))
