"""Rows of which no bound is known and failures: of the call that makes them, and of hosts that hold them."""

import os
import signal
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import pytest

import runtime as rt
from tests.patience import PATIENCE_S
from tests.runtime.unbounded import ROWS, double, hosts, is_empty, repeated, same, until


@pytest.fixture
def four() -> Iterator[rt.VirtualSlice]:
    with rt.local(hosts=2, devices=2) as started:
        yield started.make_virtual_device_set().add_slice(4)


@pytest.mark.slow
def test_an_error_in_the_middle_comes_where_rows_are_waited_for(four: rt.VirtualSlice) -> None:
    @rt.function(library="numpy", outputs=ROWS)
    def some(x: Any) -> Any:
        if (x < 0).any():
            raise ValueError("no luck")
        return x

    made, doubled = rt.pmap(some, devices=four), rt.pmap(double, devices=four)
    wrong = rt.pmap(same(lambda x: x["no such thing"]), devices=four)
    f = rt.program(lambda x: doubled(made(x)))
    x = np.zeros((4, 2))
    x[2] = -1  # one shard fails, and the others have rows
    with pytest.raises(rt.ComputationError, match="no luck"):
        f(x)
    failed = made(x)
    for _ in range(2):
        with pytest.raises(rt.ComputationError, match="no luck"):
            failed.numpy(PATIENCE_S)
        with pytest.raises(rt.ComputationError, match="no luck"):
            doubled(failed)
    with pytest.raises(rt.ComputationError, match="only integers"):
        rt.program(lambda x: wrong(made(x)))(x * x).wait(PATIENCE_S)
    other = rt.pmap(rt.function(library="numpy", outputs=ROWS)(lambda x: x[0]), devices=four)
    with pytest.raises(rt.ComputationError, match=r"stated that it returns \(float64\[\?,2\]\), and returned"):
        other(x).wait(PATIENCE_S)
    assert (f(x * x).numpy(PATIENCE_S) == 2 * x * x).all()


@contextmanager
def two_full_hosts() -> Iterator[tuple[rt.LocalRuntime, rt.Array, rt.Array]]:
    """Two hosts, an array that fills them, and one whose rows wait for room there. Whoever uses it drops the arrays."""
    with rt.local(hosts=2, devices=1, device_memory_bytes=1000, host_memory_bytes=0) as runtime:
        made = rt.pmap(repeated, devices=runtime.make_virtual_device_set().add_slice(2))
        arrays = [made(np.array([100.0, 100.0])).wait(PATIENCE_S), made(np.array([50.0, 50.0]))]
        yield runtime, arrays.pop(0), arrays.pop()


@pytest.mark.slow
def test_who_waits_for_rows_hears_of_a_host_that_ends() -> None:
    with two_full_hosts() as (runtime, held, waiting):
        until(lambda: [host["stalled"] for host in hosts(runtime)] == [1, 1])
        ended: list[type[BaseException]] = []

        def wait(array: rt.Array) -> None:
            try:
                array.wait(PATIENCE_S)
            except rt.RuntimeFailure as error:
                ended.append(type(error))

        thread = threading.Thread(target=wait, args=(waiting,))
        thread.start()
        time.sleep(0.1)
        os.kill(hosts(runtime)[0]["pid"], signal.SIGKILL)
        thread.join(PATIENCE_S)
        assert ended == [rt.LostError]
        del held, waiting, thread
        until(lambda: is_empty(runtime))


@pytest.mark.slow
def test_a_host_that_ends_with_published_rows_on_their_way_is_gone_for_all() -> None:
    with two_full_hosts() as (runtime, _held, waiting):
        runtime.publish("rows", waiting)
        ended: list[type[BaseException]] = []

        def open_it() -> None:
            try:
                runtime.open("local/rows").wait(PATIENCE_S)
            except rt.RuntimeFailure as error:
                ended.append(type(error))

        thread = threading.Thread(target=open_it)
        thread.start()
        until(lambda: [host["stalled"] for host in hosts(runtime)] == [1, 1])
        time.sleep(0.1)
        os.kill(hosts(runtime)[0]["pid"], signal.SIGKILL)
        until(lambda: len(hosts(runtime)) == 1)
        one = runtime.make_virtual_device_set().add_slice(1)
        assert len(rt.pmap(repeated, devices=one)(np.array([20.0])).numpy(PATIENCE_S)) == 20
        thread.join(PATIENCE_S)
        assert ended == [rt.LostError]
