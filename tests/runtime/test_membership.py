"""Hosts that join a server and leave it while clients go on."""

import os
import signal
import time
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

import runtime as rt
from tests.patience import PATIENCE_S

pytestmark = pytest.mark.slow

add_one = rt.function(library="numpy", outputs=lambda x: x)(lambda x: x + 1)


def until(holds: Callable[[], bool]) -> None:
    end_s = time.monotonic() + PATIENCE_S
    while not holds():
        assert time.monotonic() < end_s
        time.sleep(0.01)


def numbers(runtime: rt.Runtime) -> list[int]:
    return sorted(host["host"] for host in runtime.status()["hosts"])


def held(runtime: rt.Runtime, host: int) -> int:
    (found,) = [each["handles"] for each in runtime.status()["hosts"] if each["host"] == host]
    return int(found)


def test_a_host_joins_and_computes_what_had_no_room() -> None:
    with rt.local(islands=2, hosts=1, devices=2) as runtime:
        with pytest.raises(rt.RefusedError, match="slice of 4 devices: fits nowhere"):
            runtime.make_virtual_device_set().add_slice(4)
        assert runtime.add_host("island-1", devices=2) == 2
        assert numbers(runtime) == [0, 1, 2]
        four = runtime.make_virtual_device_set().add_slice(4)
        assert four.island == "island-1"
        assert rt.pmap(add_one, devices=four)(np.zeros(4)).numpy(PATIENCE_S).tolist() == [1, 1, 1, 1]
        with pytest.raises(rt.RefusedError, match="island 'atlantis': is not there"):
            runtime.add_host("atlantis")
        with pytest.raises(ValueError, match="devices: expected at least one, got 0"):
            runtime.add_host("island-0", devices=0)


def test_slices_keep_to_their_constraints_and_are_refused_by_name() -> None:
    with rt.local(hosts=2, devices=2, mesh=(4, 3), device_memory_bytes=1000) as runtime:
        runtime.add_host("island-0", devices=2, kind="gpu")
        devices = runtime.make_virtual_device_set()
        on_gpu = devices.add_slice(1, constraints=rt.Constraints(kind="gpu"))
        one = runtime.make_virtual_device_set().add_slice(2, constraints=rt.Constraints(same_host=True, kind="core"))
        other = runtime.make_virtual_device_set().add_slice(
            2, constraints=rt.Constraints(apart_from=(one.number,), kind="core", memory_bytes=600)
        )
        square = runtime.make_virtual_device_set().add_slice(shape=(2, 2), constraints=rt.Constraints(contiguous=True))
        for each in (on_gpu, one, other, square):
            rt.pmap(rt.timer(0, name=f"of {each.number}"), devices=each)(np.zeros(each.size)).wait(PATIENCE_S)
        ran: dict[str, set[int]] = {}
        for event in runtime.trace():
            if event["ph"] == "X":
                ran.setdefault(event["name"], set()).add(event["pid"])
        assert ran["of 0"] == {2}
        assert len(ran["of 1"]) == len(ran["of 2"]) == 1
        assert ran["of 1"] | ran["of 2"] == {0, 1}
        for constraints, says in (
            (rt.Constraints(kind="tpu"), r"6 are not of kind 'tpu'"),
            (rt.Constraints(memory_bytes=600), r"2 are with less than 600 bytes left"),
            (rt.Constraints(same_host=True), "6 of 6 devices are usable, not so many on one host"),
            (rt.Constraints(apart_from=(one.number, other.number)), "4 are of hosts of slices that it is to be apart"),
            (rt.Constraints(apart_from=(99,)), "slice 99: is not a slice of client 'local#0'"),
        ):
            with pytest.raises(rt.RefusedError, match=says):
                runtime.make_virtual_device_set().add_slice(5, constraints=constraints)
        (host,) = ran["of 1"]
        with pytest.raises(rt.RefusedError, match=f"host '{host}': cannot leave: slice 1 of client 'local#0'"):
            runtime.remove_host(host)


@pytest.mark.parametrize("network", ["shared-memory", "tcp"])
def test_a_host_leaves_and_the_arrays_on_it_move_behind_their_handles(network: str) -> None:
    with rt.local(hosts=2, devices=1, network=network) as runtime:
        devices = runtime.make_virtual_device_set().add_slice(2)
        add = rt.pmap(add_one, devices=devices)
        copies = rt.pmap(add_one, devices=devices, in_axes=None, out_axes=None)
        on_cpus = rt.pmap(add_one, devices=devices.host_cpus)
        small, large, of_hosts = add(np.arange(4.0)), add(np.arange(1_000_000.0)), on_cpus(np.arange(2.0))
        copied, empty = copies(np.arange(3.0)), add(np.zeros((2, 0)))
        failed = rt.pmap(rt.function(library="numpy", outputs=lambda x: x)(lambda x: x[7]), devices=devices)(
            np.zeros(2)
        )
        ragged = rt.pmap(
            rt.function(library="numpy", outputs=rt.ArraySpec((2, 3), "float64", is_ragged=True))(lambda x: x[1:]),
            devices=devices,
        )(np.arange(12.0).reshape(4, 3))
        unfinished = add(rt.pmap(rt.timer(0.5), devices=devices)(np.ones(2)))
        dependent = add(large)
        runtime.add_host("island-0", devices=1)
        before = runtime.status()["epoch"]
        assert runtime.remove_host(1, PATIENCE_S) == 9
        assert numbers(runtime) == [0, 2]
        assert runtime.status()["epoch"] == before + 1
        assert held(runtime, 0) == held(runtime, 2) == 9
        assert small.numpy(PATIENCE_S).tolist() == [1, 2, 3, 4]
        assert (add(large).numpy(PATIENCE_S) == np.arange(1_000_000.0) + 2).all()
        assert (dependent.numpy(PATIENCE_S) == np.arange(1_000_000.0) + 2).all()
        assert copied.numpy(PATIENCE_S).tolist() == [1, 2, 3]
        assert of_hosts.numpy(PATIENCE_S).tolist() == [1, 2]
        assert empty.numpy(PATIENCE_S).shape == (2, 0)
        assert ragged.numpy(PATIENCE_S).tolist() == [[3, 4, 5], [9, 10, 11]]
        assert unfinished.numpy(PATIENCE_S).tolist() == [1, 1]
        with pytest.raises(rt.ComputationError, match="IndexError"):
            failed.numpy(PATIENCE_S)


def test_a_host_without_room_for_its_slices_elsewhere_is_refused_and_stays() -> None:
    with rt.local(hosts=2, devices=1) as runtime:
        devices = runtime.make_virtual_device_set().add_slice(2)
        add = rt.pmap(add_one, devices=devices)
        x = add(np.zeros(2)).wait(PATIENCE_S)
        with pytest.raises(
            rt.RefusedError,
            match="host '1': cannot leave: slice 0 of client 'local#0', slice of 2 devices, fits nowhere else",
        ):
            runtime.remove_host(1)
        with pytest.raises(rt.RefusedError, match="host 7: is not there"):
            runtime.remove_host(7)
        assert numbers(runtime) == [0, 1]
        assert add(x).numpy(PATIENCE_S).tolist() == [2, 2]


def test_a_host_with_arrays_that_no_other_device_could_hold_is_refused_and_stays() -> None:
    with rt.local(hosts=1, devices=1, device_memory_bytes=2000) as runtime:
        add = rt.pmap(add_one, devices=runtime.make_virtual_device_set().add_slice(1))
        x = add(np.zeros(100)).wait(PATIENCE_S)
        runtime.add_host("island-0", devices=1, device_memory_bytes=100)
        with pytest.raises(
            rt.RefusedError, match=r"host 0: cannot leave: array float64\[100\] of client local#0 has no room elsewhere"
        ):
            runtime.remove_host(0)
        assert (add(x).numpy(PATIENCE_S) == 2).all()


def test_clients_go_on_while_hosts_come_and_go() -> None:
    with rt.local(hosts=2, devices=2, weights={"busy": 1}) as runtime:
        with rt.connect(runtime.address, runtime.tokens["busy"]) as client:
            devices = client.make_virtual_device_set().add_slice(4)
            add = rt.pmap(add_one, devices=devices)
            x: Any = add(np.zeros(40_000))
            for step in range(4):
                new = runtime.add_host("island-0", devices=2)
                runtime.remove_host(new - 2, PATIENCE_S)
                for _ in range(5):
                    x = add(x)
                assert numbers(runtime) == [step + 1, step + 2]
            assert (x.numpy(PATIENCE_S) == 21).all()
        until(lambda: all(host["handles"] == 0 for host in runtime.status()["hosts"]))
        assert all(sum(host["device_bytes"]) == 0 for host in runtime.status()["hosts"])


def test_what_is_released_while_its_host_waits_to_leave_is_forgotten_everywhere() -> None:
    with rt.local(hosts=1, devices=1, device_memory_bytes=1000) as runtime:
        fill = rt.function(library="numpy", outputs=rt.ArraySpec((100,), "float64"))(lambda x: x.repeat(100))
        x = rt.pmap(fill, devices=runtime.make_virtual_device_set().add_slice(1))(np.ones(1)).wait(PATIENCE_S)
        runtime.add_host("island-0", devices=1, device_memory_bytes=1000, host_memory_bytes=0)
        blocking = rt.pmap(fill, devices=runtime.make_virtual_device_set().add_slice(1))(np.ones(1)).wait(PATIENCE_S)
        assert (held(runtime, 0), held(runtime, 1)) == (1, 1)
        with pytest.raises(TimeoutError):
            runtime.remove_host(0, 0.3)  # the other host has no room until somebody lets go
        assert runtime.status()["hosts"][0]["is_leaving"]
        del x
        until(lambda: numbers(runtime) == [1])
        assert (blocking.numpy(PATIENCE_S) == 1).all()
        del blocking
        until(lambda: held(runtime, 1) == 0)
        assert runtime.status()["hosts"][0]["device_bytes"] == [0]


def test_arrays_go_to_a_third_host_where_the_one_that_they_were_moving_to_dies() -> None:
    with rt.local(hosts=1, devices=1, device_memory_bytes=1000) as runtime:
        fill = rt.function(library="numpy", outputs=rt.ArraySpec((100,), "float64"))(lambda x: x.repeat(100))
        one = runtime.make_virtual_device_set().add_slice(1)
        x = rt.pmap(fill, devices=one)(np.ones(1)).wait(PATIENCE_S)
        runtime.add_host("island-0", devices=1, device_memory_bytes=1000, host_memory_bytes=0)
        blocking = rt.pmap(fill, devices=runtime.make_virtual_device_set().add_slice(1))(np.ones(1)).wait(PATIENCE_S)
        with pytest.raises(TimeoutError):
            runtime.remove_host(0, 0.2)
        runtime.add_host("island-0", devices=1)
        os.kill(next(host["pid"] for host in runtime.status()["hosts"] if host["host"] == 1), signal.SIGKILL)
        until(lambda: numbers(runtime) == [2])
        assert (x.numpy(PATIENCE_S) == 1).all()
        with pytest.raises(rt.LostError, match="host 1 of island island-0 ended"):
            blocking.numpy(PATIENCE_S)
        assert (rt.pmap(fill, devices=one)(np.ones(1)).numpy(PATIENCE_S) == 1).all()


def test_a_host_that_dies_while_it_leaves_loses_what_was_there() -> None:
    with rt.local(hosts=2, devices=1) as runtime:
        devices = runtime.make_virtual_device_set().add_slice(1)
        rt.pmap(rt.timer(600), devices=devices)(np.ones(1))
        x = rt.pmap(add_one, devices=devices.host_cpus)(np.ones(1)).wait(PATIENCE_S)
        (busy,) = [host for host in runtime.status()["hosts"] if sum(host["queued"])]
        with pytest.raises(TimeoutError):
            runtime.remove_host(busy["host"], 0.2)
        assert x.item() == 2
        os.kill(busy["pid"], signal.SIGKILL)
        until(lambda: len(numbers(runtime)) == 1)
        assert rt.pmap(add_one, devices=devices)(np.ones(1)).item() == 2


def test_arrays_of_a_suspended_client_move_too() -> None:
    with (
        rt.local(hosts=2, devices=1, weights={"idle": 1}) as runtime,
        rt.connect(runtime.address, runtime.tokens["idle"]) as client,
    ):
        add = rt.pmap(add_one, devices=client.make_virtual_device_set().add_slice(2))
        x = add(np.zeros(2)).wait(PATIENCE_S)
        runtime.suspend("idle")
        assert runtime.remove_host(1, PATIENCE_S) == 1
        with pytest.raises(rt.RefusedError, match="slice of 2 devices: fits nowhere"):
            runtime.resume("idle")
        runtime.add_host("island-0", devices=1)
        runtime.resume("idle")
        assert add(x).numpy(PATIENCE_S).tolist() == [2, 2]


def test_who_is_no_operator_adds_and_removes_no_host() -> None:
    with rt.local(weights={"other": 1}) as runtime, rt.connect(runtime.address, runtime.tokens["other"]) as client:
        with pytest.raises(rt.RefusedError, match="client other is no operator"):
            client.add_host("island-0")
        with pytest.raises(rt.RefusedError, match="client other is no operator"):
            client.remove_host(0)
        assert numbers(runtime) == [0]


def test_collectives_and_pipelines_go_on_when_their_host_leaves() -> None:
    pytest.importorskip("torch")

    def batches(step: int, shard: int, _: int) -> Iterator[Any]:
        while True:
            yield np.full(1, 10.0 * step + shard, "float32")
            step += 1

    with rt.local(hosts=2, devices=1) as runtime:
        devices = runtime.make_virtual_device_set().add_slice(2)
        total = rt.pmap(rt.function(collective=True)(lambda x: rt.all_reduce(x)), devices=devices)
        outputs = rt.ArraySpec((1,), "float32")
        with rt.input_pipeline(batches, devices=devices, outputs=outputs) as pipeline:
            assert total(next(pipeline)).numpy(PATIENCE_S).tolist() == [1, 1]
            runtime.add_host("island-0", devices=1)
            runtime.remove_host(0, PATIENCE_S)
            for step in range(1, 5):
                assert total(next(pipeline)).numpy(PATIENCE_S).tolist() == [20 * step + 1] * 2
