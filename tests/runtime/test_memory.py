"""Budgets of memory, on real processes: spilling, waiting, and what can never fit."""

import gc
import time
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

import runtime as rt
from tests.patience import PATIENCE_S

pytestmark = pytest.mark.slow

add_one = rt.function(library="numpy", outputs=lambda x: x)(lambda x: x + 1)
ITEMS, BYTES = 50, 400


def until(holds: Callable[[], bool]) -> None:
    end_s = time.monotonic() + PATIENCE_S
    while not holds():
        assert time.monotonic() < end_s
        time.sleep(0.01)


def is_empty(runtime: rt.Runtime) -> bool:
    gc.collect()
    return all(sum(host["device_bytes"]) + host["spilled_bytes"] == 0 for host in runtime.status()["hosts"])


@pytest.fixture
def runtime() -> Iterator[rt.LocalRuntime]:
    with rt.local(devices=1, device_memory_bytes=1000, host_memory_bytes=1300) as started:
        yield started


def test_arrays_are_spilled_then_computations_wait_until_some_are_released(runtime: rt.LocalRuntime) -> None:
    add = rt.pmap(add_one, devices=runtime.make_virtual_device_set().add_slice(1))
    held = [add(np.full(ITEMS, number, np.float64)).wait(PATIENCE_S) for number in range(3)]
    (host,) = runtime.status()["hosts"]
    assert (host["device_bytes"], host["spilled_bytes"], host["stalled"]) == ([BYTES], 2 * BYTES, 0)
    again = add(held[0])  # it comes back from the host, in exchange for another
    assert (again.numpy(PATIENCE_S) == 2).all()
    third = add(again).wait(PATIENCE_S)
    waiting = add(third)
    with pytest.raises(TimeoutError):
        waiting.wait(0.3)
    (host,) = runtime.status()["hosts"]
    assert (host["device_bytes"], host["spilled_bytes"], host["stalled"]) == ([2 * BYTES], 3 * BYTES, 1)
    del held[0]
    assert (waiting.numpy(PATIENCE_S) == 4).all()
    for number, each in enumerate(held, start=1):
        assert (each.numpy(PATIENCE_S) == number + 1).all()
    del held, again, third, waiting, each
    until(lambda: is_empty(runtime))


def test_what_can_never_fit_is_refused_by_name_and_others_go_on(runtime: rt.LocalRuntime) -> None:
    add = rt.pmap(add_one, devices=runtime.make_virtual_device_set().add_slice(1))
    for after in (lambda x: x, add):
        with pytest.raises(rt.RefusedError, match=r"lambda: .* exceed the 1,000 of device 0"):
            after(add(np.zeros(100))).wait(PATIENCE_S)
    assert (add(np.zeros(ITEMS)).numpy(PATIENCE_S) == 1).all()
    until(lambda: is_empty(runtime))


def test_long_programs_need_no_more_than_their_largest_step(runtime: rt.LocalRuntime) -> None:
    add = rt.pmap(add_one, devices=runtime.make_virtual_device_set().add_slice(1))

    @rt.program
    def chain(x: Any) -> Any:
        for _ in range(30):
            x = add(x)
        return x

    assert (chain(np.zeros(ITEMS)).numpy(PATIENCE_S) == 30).all()
    until(lambda: is_empty(runtime))


def test_a_client_that_ends_leaves_no_bytes_behind(runtime: rt.LocalRuntime) -> None:
    with rt.connect(runtime.address, runtime.tokens["local"]) as client:
        devices = client.make_virtual_device_set().add_slice(1)
        add, wait = rt.pmap(add_one, devices=devices), rt.pmap(rt.timer(60), devices=devices)
        held = [add(np.zeros(ITEMS)).wait(PATIENCE_S) for _ in range(2)]
        held += [wait(np.zeros(ITEMS)), add(np.zeros(ITEMS)), wait(held[0])]
        client.status()
    until(lambda: is_empty(runtime))
    add = rt.pmap(add_one, devices=runtime.make_virtual_device_set().add_slice(1))
    assert (add(np.zeros(ITEMS)).numpy(PATIENCE_S) == 1).all()


def test_short_calls_that_fit_one_by_one_run_though_they_do_not_fit_together(runtime: rt.LocalRuntime) -> None:
    devices = runtime.make_virtual_device_set().add_slice(1)
    large, one = rt.ArraySpec((75,), "float64"), rt.ArraySpec((1,), "float64")  # 600 bytes of 1,000, and 8
    fill = rt.pmap(rt.function(library="numpy", outputs=large)(lambda x: np.full(75, x[0])), devices=devices)
    head = rt.pmap(rt.function(library="numpy", outputs=one)(lambda x: x[:1].copy()), devices=devices)
    more = rt.pmap(rt.function(library="numpy", outputs=one)(lambda x, y: x + y[:1]), devices=devices)

    @rt.program
    def heads(x: Any, y: Any) -> Any:
        return more(head(x), y)

    first, second = (fill(np.array([number])).wait(PATIENCE_S) for number in (1.0, 2.0))
    assert more(head(first), second).numpy(PATIENCE_S).tolist() == [3.0]  # from now on they are known to be short
    for _ in range(3):
        assert heads(first, second).numpy(PATIENCE_S).tolist() == [3.0]
    del first, second
    until(lambda: is_empty(runtime))
