"""Arrays of which no bound is known: calls that return as many rows as they like, and what follows them."""

import threading
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import runtime as rt
from runtime.arrays import UNBOUNDED
from runtime.codec import decode_plain
from runtime.program import Call, Input, Output, Value
from tests.patience import PATIENCE_S
from tests.runtime.test_tracing import FOUR, TWO
from tests.runtime.unbounded import ROWS, double, repeated

EXPERTS = 3


@rt.function(library="numpy", outputs=[ROWS] * EXPERTS)
def route(x: Any) -> Any:
    return tuple(x[x[:, 0] % EXPERTS == number] for number in range(EXPERTS))


@rt.function(library="numpy", outputs=rt.ArraySpec((), "bool"))
def has_rows(x: Any) -> Any:
    return np.array(len(x) > 0)


@rt.function(library="numpy", outputs=ROWS)
def without_last(x: Any) -> Any:
    return x[:-1]


# Specs and programs


def test_a_spec_without_a_bound_keeps_none_when_it_is_cut_or_joined() -> None:
    assert str(ROWS) == "float64[?,2]"
    assert (ROWS.is_ragged, ROWS.is_bounded, ROWS.size_bytes, ROWS.row_bytes) == (True, False, 0, 16)
    assert [ROWS.is_met_by(shape) for shape in ((0, 2), (10**9, 2), (1, 3), (2,))] == [True, True, False, False]
    for sharding in (rt.Sharding(0, 3), rt.Sharding(None, 3)):
        assert sharding.shard_spec(ROWS) == sharding.whole_spec(ROWS) == ROWS
    assert decode_plain(rt.ArraySpec, [list(ROWS.shape), "float64", True]) == ROWS
    assert ROWS.shape == (UNBOUNDED, 2)


@pytest.mark.parametrize(("rows", "bound"), [(0, 1), (1, 1), (2, 2), (3, 4), (4, 4), (5, 8), (2**40 + 1, 2**41)])
def test_the_bound_of_what_is_there_is_a_power_of_two_for_each_shard(rows: int, bound: int) -> None:
    assert rt.Sharding(0, 3).bounded(ROWS, rows) == rt.ArraySpec((3 * bound, 2), "float64", is_ragged=True)
    assert rt.Sharding(None, 3).bounded(ROWS, rows) == rt.ArraySpec((bound, 2), "float64", is_ragged=True)


@pytest.mark.parametrize("shape", [(2, None), (None, None)])
def test_none_elsewhere_is_refused_by_name(shape: Any) -> None:
    with pytest.raises(ValueError, match="shape: only the first size may be None"):
        rt.ArraySpec(shape, "float64")


def test_none_cannot_be_joined_along_another_axis() -> None:
    with pytest.raises(ValueError, match=r"route: float64\[\?,4\] is ragged, and can be cut along axis 0 alone"):
        rt.pmap(route, devices=TWO, out_axes=1)(np.zeros((2, 2)))


def test_programs_neither_take_what_has_no_bound_nor_make_it_beside_other_calls() -> None:
    all_of = rt.Sharding(None, 1)
    known = rt.ArraySpec((2, 2), "float64")
    makes = Call(0, "route", 0, (Input(Value(0), all_of),), (Output(ROWS, all_of),))
    takes = Call(0, "double", 0, (Input(Value(1), all_of),), (Output(known, all_of),))
    rt.Program("p", (known,), (makes,), (Value(1),))
    with pytest.raises(ValueError, match="p: route returns rows of which no bound is known, beside other calls"):
        rt.Program("p", (known,), (makes, takes), (Value(2),))
    with pytest.raises(ValueError, match=r"p: argument 0 is float64\[\?,2\], and no bound of its rows is known"):
        rt.Program("p", (ROWS,), (makes,), (Value(1),))


def test_there_is_no_program_of_a_function_with_such_a_call_even_if_it_catches_the_error() -> None:
    routed, doubled = rt.pmap(route, devices=TWO), rt.pmap(double, devices=FOUR)

    @rt.program
    def careless(x: Any) -> Any:
        try:
            return routed(doubled(x))
        except TypeError:
            return doubled(x)

    for traced in (careless, rt.program(lambda x: careless(x)[0])):
        with pytest.raises(rt.UnboundedError, match="there is no program: route returns rows of which no bound is"):
            traced.trace(np.zeros((4, 2)))


# On real processes


@pytest.fixture(scope="module")
def runtime() -> Iterator[rt.LocalRuntime]:
    with rt.local(islands=2, hosts=2, devices=2) as started:
        yield started


@pytest.fixture
def four(runtime: rt.LocalRuntime) -> rt.VirtualSlice:
    return runtime.make_virtual_device_set().add_slice(4, island="island-0")


@pytest.mark.slow
@settings(max_examples=15, deadline=None)
@given(
    choices=st.integers(0, 5).flatmap(lambda rows: st.lists(st.integers(0, 8), min_size=4 * rows, max_size=4 * rows))
)
def test_tokens_are_routed_to_experts_without_a_bound(runtime: rt.LocalRuntime, choices: list[int]) -> None:
    devices = runtime.make_virtual_device_set()
    tokens = devices.add_slice(4, island="island-0")
    routed = rt.pmap(route, devices=tokens)
    placed = [devices.add_slice(1, island="island-1") for _ in range(EXPERTS)]
    experts = [rt.pmap(double, devices=slice_, in_axes=None) for slice_ in placed]
    lying = rt.pmap(double, devices=tokens)

    @rt.program
    def layer(x: Any) -> Any:
        before = lying(x)
        to_experts = routed(x)
        outputs = [lying(rows) for rows in to_experts]
        return {"gathered": [expert(rows) for expert, rows in zip(experts, outputs, strict=True)], "x": (x, before)}

    x = np.stack([np.array(choices), np.arange(len(choices))], axis=1).astype(np.float64)
    found = layer(x)
    for number, each in enumerate(found["gathered"]):
        assert (each.numpy(PATIENCE_S) == 4 * x[x[:, 0] % EXPERTS == number]).all()
        assert len(each) == sum(choice % EXPERTS == number for choice in choices)
    assert (found["x"][0] == x).all()
    assert (found["x"][1].numpy(PATIENCE_S) == 2 * x).all()


@pytest.mark.slow
def test_rows_are_unknown_until_something_needs_them(four: rt.VirtualSlice) -> None:
    made = rt.pmap(repeated, devices=four)(np.array([0.0, 5.0, 1.0, 2.0]))
    assert str(made.known_spec) == "float64[?]"
    assert made.dtype == np.float64
    assert made.numpy(PATIENCE_S).tolist() == [5.0] * 5 + [1.0] + [2.0] * 2
    assert (len(made), made.shape) == (8, (4 * 8,))
    copies = rt.pmap(repeated, devices=four, in_axes=None, out_axes=None)(np.array([3.0]))
    assert copies.wait(PATIENCE_S).known_spec == rt.ArraySpec((4,), "float64", is_ragged=True)
    assert copies.numpy(PATIENCE_S).tolist() == [3.0] * 3


@pytest.mark.slow
def test_a_function_of_pytorch_may_select(four: rt.VirtualSlice) -> None:
    pytest.importorskip("torch")
    select = rt.function(outputs=rt.ArraySpec((None,), "float32"))(lambda x: x[x > 0])
    total = rt.function(outputs=rt.ArraySpec((1,), "float32"))(lambda x: x.sum().reshape(1))
    selected, summed = rt.pmap(select, devices=four), rt.pmap(total, devices=four, in_axes=None)
    f = rt.program(lambda x: summed(selected(x)))
    x = np.linspace(-1, 1, 64, dtype=np.float32)
    assert f(x).numpy(PATIENCE_S) == pytest.approx(np.full(4, x[x > 0].sum()))
    assert f(-np.abs(x)).numpy(PATIENCE_S).tolist() == [0.0] * 4


@pytest.mark.slow
def test_a_timer_returns_no_rows(four: rt.VirtualSlice) -> None:
    paused = rt.pmap(rt.timer(0.001, outputs=ROWS), devices=four)(np.zeros(4))
    assert rt.pmap(double, devices=four)(paused).numpy(PATIENCE_S).shape == (0, 2)


@pytest.mark.slow
def test_conditions_and_loops_go_on_as_in_python(runtime: rt.LocalRuntime, four: rt.VirtualSlice) -> None:
    one = runtime.make_virtual_device_set().add_slice(1)
    first, drop = rt.pmap(route, devices=four), rt.pmap(without_last, devices=four)
    any_left = rt.pmap(has_rows, devices=one, in_axes=None, out_axes=None)
    gathered = rt.pmap(double, devices=one, in_axes=None)
    traced = rt.program(lambda x: rt.cond(any_left(x), gathered, gathered, x))

    @rt.program
    def f(x: Any) -> Any:
        rows, *_ = first(x)
        left = rt.while_loop(lambda state: any_left(state[0]), lambda state: (drop(state[0]),), (rows,), at_most=2)[0]
        return rt.cond(any_left(left), traced, lambda rows: rows, left)

    x = np.zeros((16, 2))
    x[:, 1] = np.arange(16)
    assert f(x).numpy(PATIENCE_S)[:, 1].tolist() == [0, 2, 8, 10, 16, 18, 24, 26]
    assert f(x[:8]).numpy(PATIENCE_S).tolist() == []
    with pytest.raises(TypeError, match=r"predicate: expected a traced bool\[\], got float64\[<=16,2\]"):
        rt.program(lambda x: rt.cond(first(x)[0], gathered, gathered, x))(x)
    with pytest.raises(ValueError, match="cond: works inside of a program"):
        rt.cond(any_left(x), gathered, gathered, x)


@pytest.mark.slow
def test_what_is_no_array_of_the_runtime_is_no_result(four: rt.VirtualSlice) -> None:
    routed = rt.pmap(route, devices=four)
    with pytest.raises(TypeError, match="<lambda>: expected it to return arrays of the runtime, got 3"):
        rt.program(lambda x: (routed(x), 3))(np.zeros((4, 2)))


@pytest.mark.slow
def test_batches_of_input_pipelines_may_have_any_number_of_rows(four: rt.VirtualSlice) -> None:
    def batches(step: int, shard: int, shards: int) -> Iterator[Any]:
        for number in range(step, 3):
            yield np.full((number * shard, 2), 1.0 / shards)

    doubled = rt.pmap(double, devices=four)
    with rt.input_pipeline(batches, devices=four, outputs=ROWS) as pipeline:
        assert [doubled(batch).numpy(PATIENCE_S).sum() for batch in pipeline] == [0, 6, 12]


@pytest.mark.slow
def test_clients_and_threads_do_not_wait_for_each_other(runtime: rt.LocalRuntime, four: rt.VirtualSlice) -> None:
    with rt.connect(runtime.address, runtime.tokens["local"]) as client:
        theirs = client.make_virtual_device_set().add_slice(4, island="island-0")
        found: dict[tuple[int, int], list[float]] = {}

        def use(number: int, slice_: rt.VirtualSlice) -> None:
            f = rt.program(lambda x: lying(made(x)))
            made, lying = rt.pmap(repeated, devices=slice_), rt.pmap(double, devices=slice_)
            for step in range(10):
                found[number, step] = f(np.full(4, float(step))).numpy(PATIENCE_S).tolist()

        threads = [threading.Thread(target=use, args=each) for each in enumerate((four, theirs, theirs))]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert found == {(number, step): [2.0 * step] * 4 * step for number in range(3) for step in range(10)}
