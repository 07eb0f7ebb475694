"""Arrays of which data say how many rows they have: tokens that are routed to experts, as in a mixture of them."""

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import runtime as rt
from runtime.lowering.resharding import Resharding
from tests.patience import PATIENCE_S

EXPERTS, WIDTH = 3, 2


def of_rows(x: rt.ArraySpec) -> tuple[rt.ArraySpec, ...]:
    """For each expert rows of x, and where they came from."""
    rows = rt.ArraySpec(x.shape, x.dtype, is_ragged=True)
    return (*[rows] * EXPERTS, *[rt.ArraySpec(x.shape[:1], "int64", is_ragged=True)] * EXPERTS)


@rt.function(library="numpy", outputs=of_rows)
def route(x: Any) -> Any:
    expert = x[:, 0].astype(int) % EXPERTS
    chosen = [np.flatnonzero(expert == number) for number in range(EXPERTS)]
    return (*(x[rows] for rows in chosen), *(x[rows, 1].astype(int) for rows in chosen))


def same(x: rt.ArraySpec) -> rt.ArraySpec:
    return x


def expert(number: int) -> rt.Function:
    return rt.function(library="numpy", outputs=same)(lambda x: x * np.array([10 + number, 1.0]))


def all_rows(x: rt.ArraySpec, *_: rt.ArraySpec) -> rt.ArraySpec:
    return rt.ArraySpec(x.shape, x.dtype)


@rt.function(library="numpy", outputs=all_rows)
def combine(x: Any, *routed: Any) -> Any:
    result = np.full(x.shape, np.nan)
    for rows, positions in zip(routed[:EXPERTS], routed[EXPERTS:], strict=True):
        mine = [np.flatnonzero(x[:, 1] == position) for position in positions]
        for row, where in zip(rows, mine, strict=True):
            result[where] = row
    return result


def test_ragged_arrays_keep_their_sharding_or_are_gathered() -> None:
    spec = rt.ArraySpec((8, 2), "float32", is_ragged=True)
    assert str(spec) == "float32[<=8,2]"
    assert [spec.is_met_by(shape) for shape in ((8, 2), (0, 2), (9, 2), (8, 1), (8,))] == [True, True, *[False] * 3]
    Resharding(spec, rt.Sharding(0, 4), rt.Sharding(0, 4))
    Resharding(spec, rt.Sharding(0, 4), rt.Sharding(None, 3))
    with pytest.raises(ValueError, match=r"float32\[<=8,2\] is ragged: it goes as it lies, 4 on axis 0, or whole"):
        Resharding(spec, rt.Sharding(0, 4), rt.Sharding(0, 2))
    with pytest.raises(ValueError, match="can be cut along axis 0 alone"):
        rt.Sharding(1, 2).check(spec)
    with pytest.raises(ValueError, match="a ragged array must have an axis"):
        rt.ArraySpec((), "float32", is_ragged=True)


@pytest.fixture(scope="module")
def runtime() -> Iterator[rt.LocalRuntime]:
    with rt.local(islands=2, hosts=2, devices=2) as started:
        yield started


@pytest.mark.slow
def test_tokens_are_routed_to_experts_and_back(runtime: rt.LocalRuntime) -> None:
    devices = runtime.make_virtual_device_set()
    tokens = devices.add_slice(4, island="island-0")
    routed = rt.pmap(route, devices=tokens)
    experts = [
        rt.pmap(
            expert(number),
            devices=devices.add_slice(1, island="island-1"),
            in_axes=None,
        )
        for number in range(EXPERTS)
    ]
    combined = rt.pmap(combine, devices=tokens, in_axes=(0, *[None] * (2 * EXPERTS)))

    @rt.program
    def layer(x: Any) -> Any:
        to_experts = routed(x)
        outputs = [expert(rows) for expert, rows in zip(experts, to_experts[:EXPERTS], strict=True)]
        return combined(x, *outputs, *to_experts[EXPERTS:]), to_experts[0]

    numbers = np.random.default_rng(0)
    for chosen in (numbers.integers(0, 9, 16), np.zeros(16), np.full(16, 2)):
        x = np.stack([chosen, np.arange(16)], axis=1).astype(np.float64)
        result, first = layer(x)
        expected = x * np.stack([10 + chosen % EXPERTS, np.ones(16)], axis=1)
        assert (result.numpy(PATIENCE_S) == expected).all()
        assert (first.numpy(PATIENCE_S) == x[chosen % EXPERTS == 0]).all()
        assert len(first) == (chosen % EXPERTS == 0).sum()


@pytest.mark.slow
def test_what_does_not_fit_a_ragged_array_is_refused_by_name(runtime: rt.LocalRuntime) -> None:
    devices = runtime.make_virtual_device_set()
    four, two = devices.add_slice(4, island="island-0"), devices.add_slice(2, island="island-1")
    at_most = rt.function(library="numpy", outputs=lambda _: rt.ArraySpec((2,), "float64", is_ragged=True))
    few, many = rt.pmap(at_most(lambda x: x), devices=four), rt.pmap(at_most(lambda x: np.zeros(3) + x), devices=four)
    with pytest.raises(rt.ComputationError, match=r"stated that it returns \(float64\[<=2\]\), and returned"):
        many(np.zeros(4)).wait(PATIENCE_S)
    held = few(np.zeros(4))
    with pytest.raises(rt.RefusedError, match="is ragged: it goes as it lies"):
        rt.pmap(rt.function(library="numpy", outputs=same)(lambda x: x), devices=two)(held).wait(PATIENCE_S)
    with pytest.raises(TypeError, match="functions that take ragged arrays must state their outputs"):
        rt.pmap(lambda x: x, devices=four)(held)
    assert len(held) == 4
