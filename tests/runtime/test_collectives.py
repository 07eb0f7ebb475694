"""Collectives inside functions, on real processes: several devices in each."""

import os
import signal
import time
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import runtime as rt
from runtime.server.settings import NETWORKS
from tests.patience import PATIENCE_S

torch = pytest.importorskip("torch")
pytestmark = pytest.mark.slow


@rt.function(collective=True)
def summed(x: Any) -> Any:
    return rt.all_reduce(x) + rt.shard_index()


@rt.function(collective=True)
def gathered(x: Any) -> Any:
    return rt.all_gather(x), rt.all_reduce(x, "max"), rt.reduce_scatter(rt.all_gather(x)) / rt.num_shards()


@rt.function(collective=True)
def failing_in_one(x: Any) -> Any:
    if rt.shard_index() == 3:
        raise ValueError("no luck in shard 3")
    return rt.all_reduce(x)


@rt.function(collective=True)
def late_in_one(x: Any) -> Any:
    if rt.shard_index() == 1:
        time.sleep(PATIENCE_S)
    return rt.all_reduce(x)


@pytest.fixture(scope="module")
def runtime() -> Iterator[rt.LocalRuntime]:
    with rt.local(islands=1, hosts=2, devices=2) as started:
        yield started


def test_shards_reduce_and_gather_over_hosts(runtime: rt.LocalRuntime) -> None:
    devices = runtime.make_virtual_device_set().add_slice(4)
    x = np.array([1.0, 2.0, 3.0, 4.0], np.float32)
    assert rt.pmap(summed, devices=devices)(x).numpy(PATIENCE_S).tolist() == [10, 11, 12, 13]
    everything, largest, scattered = rt.pmap(gathered, devices=devices, out_axes=(None, 0, 0))(x)
    assert everything.shape == (4,)
    assert everything.numpy(PATIENCE_S).tolist() == [1, 2, 3, 4]
    assert largest.numpy(PATIENCE_S).tolist() == [4, 4, 4, 4]
    assert scattered.numpy(PATIENCE_S).tolist() == [1, 2, 3, 4]


@pytest.mark.parametrize("network", NETWORKS)
def test_large_and_small_arrays_and_single_shards_are_reduced_alike(network: str) -> None:
    with rt.local(islands=1, hosts=2, devices=2, network=network) as runtime:
        for size in (4, 3, 1):
            add = rt.pmap(summed, devices=runtime.make_virtual_device_set().add_slice(size))
            for columns in (1, 5000):
                found = add(np.ones((size, columns), np.float32)).numpy(PATIENCE_S)
                assert found.tolist() == [[size + shard] * columns for shard in range(size)]


def test_programs_of_many_collectives_on_slices_that_share_devices(runtime: rt.LocalRuntime) -> None:
    placed = [rt.pmap(summed, devices=runtime.make_virtual_device_set().add_slice(size)) for size in (4, 2, 4)]

    @rt.program
    def chain(x: Any) -> Any:
        for number in range(12):
            x = placed[number % 3](x)
        return x

    expected = np.ones(4)
    for number in range(12):
        cut = expected.reshape((2, 2) if number % 3 == 1 else (4, 1))
        expected = (cut.sum(axis=0) + np.arange(len(cut))[:, None]).reshape(4)
    started = [chain(np.ones(4)) for _ in range(3)]
    for each in started:
        assert each.numpy(PATIENCE_S).tolist() == expected.tolist()


def test_a_shard_that_fails_fails_those_that_wait_for_it_with_the_cause(runtime: rt.LocalRuntime) -> None:
    devices = runtime.make_virtual_device_set().add_slice(4)
    failing, add = rt.pmap(failing_in_one, devices=devices), rt.pmap(summed, devices=devices)
    for _ in range(3):
        with pytest.raises(rt.ComputationError, match="no luck in shard 3"):
            failing(np.ones(4)).wait(PATIENCE_S)
        assert add(np.ones(4)).numpy(PATIENCE_S).tolist() == [4, 5, 6, 7]


def test_a_host_that_is_killed_holds_up_no_collective() -> None:
    with rt.local(islands=1, hosts=2, devices=2) as runtime:
        four, two = (runtime.make_virtual_device_set().add_slice(size) for size in (4, 2))
        add, add_two = rt.pmap(summed, devices=four), rt.pmap(summed, devices=two)
        x: Any = add(np.ones(4)).wait(PATIENCE_S)
        for _ in range(200):
            x = add(x)
        os.kill(runtime.status()["hosts"][1]["pid"], signal.SIGKILL)
        with pytest.raises(rt.RuntimeFailure, match="host"):
            x.wait(PATIENCE_S)
        assert add_two(np.ones(2)).numpy(PATIENCE_S).tolist() == [2, 3]


def test_a_host_that_is_killed_before_it_joined_holds_up_no_shard() -> None:
    with rt.local(islands=1, hosts=2, devices=1) as runtime:
        two, one = (runtime.make_virtual_device_set().add_slice(size) for size in (2, 1))
        (killed,) = (host["pid"] for host in runtime.status()["hosts"] if host["host"] == 1)
        x = rt.pmap(late_in_one, devices=two)(np.ones(2))
        while any(host.get("queued") != [1] for host in runtime.status()["hosts"]):  # they are busy for a while
            time.sleep(0.01)
        os.kill(killed, signal.SIGKILL)
        with pytest.raises(rt.RuntimeFailure, match="host"):
            x.wait(PATIENCE_S)
        assert rt.pmap(summed, devices=one)(np.ones(1)).numpy(PATIENCE_S).tolist() == [1]


def test_collectives_outside_of_collective_functions_are_refused_by_name(runtime: rt.LocalRuntime) -> None:
    devices = runtime.make_virtual_device_set().add_slice(2)
    with pytest.raises(TypeError, match=r"made with function\(collective=True\)"):
        rt.pmap(lambda x: rt.all_reduce(x), devices=devices)(np.ones(2))
    with pytest.raises(ValueError, match="collective: only functions of PyTorch"):
        rt.function(library="numpy", outputs=rt.ArraySpec((), "float64"), collective=True)(lambda x: x)
    with pytest.raises(TypeError, match="reduction: expected sum, product, min or max, got 'mean'"):
        rt.pmap(rt.function(collective=True)(lambda x: rt.all_reduce(x, "mean")), devices=devices)(np.ones(2))
