"""Real processes of a local runtime: a server, executors, clients."""

import gc
import os
import re
import signal
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import runtime as rt
from runtime.tracing import TracedProgram
from tests.patience import PATIENCE_S

pytestmark = pytest.mark.slow


def same(*specs: rt.ArraySpec) -> rt.ArraySpec:
    return specs[0]


@rt.function(library="numpy", outputs=same)
def add_one(x: Any) -> Any:
    return x + 1


@rt.function(library="numpy", outputs=same)
def double(x: Any) -> Any:
    return x * 2


@rt.function(library="numpy", outputs=same)
def fail(x: Any) -> Any:
    return x["no such thing"]


@rt.function(library="numpy", outputs=same)
def grow(x: Any) -> Any:
    return np.concatenate((x, x))


@rt.function(library="numpy", outputs=lambda _, y: y)
def scale(x: Any, y: Any) -> Any:
    return x.sum() * y


@pytest.fixture(scope="module")
def runtime() -> Iterator[rt.LocalRuntime]:
    with rt.local(islands=2, hosts=2, devices=2) as started:
        yield started


def slices(runtime: rt.Runtime, *sizes: int) -> list[rt.VirtualSlice]:
    devices = runtime.make_virtual_device_set()
    return [devices.add_slice(size, island=f"island-{number % 2}") for number, size in enumerate(sizes)]


def values(*arrays: rt.Array) -> list[list[float]]:
    return [array.numpy(PATIENCE_S).tolist() for array in arrays]


def test_the_example_of_figure_2(runtime: rt.LocalRuntime) -> None:
    one, two, three = slices(runtime, 2, 2, 2)
    a = rt.pmap(double, devices=one)
    b = rt.pmap(lambda x: x + 1.0, devices=two)
    c = rt.pmap(lambda x: x / 2.0, devices=three)

    @rt.program
    def f(v: Any) -> Any:
        x = a(v)
        y = b(x)
        z = a(c(x))
        return (y, z)

    assert values(*f(np.array([1.0, 2.0]))) == [[3, 5], [2, 4]]


def test_arrays_are_resharded_between_slices_of_different_sizes_and_axes(runtime: rt.LocalRuntime) -> None:
    four, two = slices(runtime, 4, 2)
    rows, columns = rt.pmap(add_one, devices=four), rt.pmap(double, devices=two, in_axes=1, out_axes=1)
    copies = rt.pmap(scale, devices=four, in_axes=(None, 0))

    @rt.program
    def f(v: Any) -> Any:
        x = columns(rows(v))
        return x, copies(x, v)

    v = np.arange(32.0).reshape(8, 4)
    x, scaled = f(v)
    assert (x.numpy(PATIENCE_S) == (v + 1) * 2).all()
    assert (scaled.numpy(PATIENCE_S) == ((v + 1) * 2).sum() * v).all()


def test_calls_chain_by_handles_without_waiting(runtime: rt.LocalRuntime) -> None:
    one, two = slices(runtime, 2, 2)
    here, there = rt.pmap(add_one, devices=one), rt.pmap(double, devices=two)
    x: Any = np.zeros(4)
    expected = np.zeros(4)
    for _ in range(20):
        x, expected = there(here(x)), (expected + 1) * 2
    assert (x.numpy(PATIENCE_S) == expected).all()


def test_large_arrays_pass_between_hosts(runtime: rt.LocalRuntime) -> None:
    one, two = slices(runtime, 4, 4)
    v = np.arange(4_000_000.0)
    assert (rt.pmap(double, devices=two)(rt.pmap(add_one, devices=one)(v)).numpy(PATIENCE_S) == (v + 1) * 2).all()


def test_an_error_has_the_traceback_of_the_user_s_code_and_passes_on(runtime: rt.LocalRuntime) -> None:
    one, two = slices(runtime, 2, 2)
    failing, after = rt.pmap(fail, devices=one), rt.pmap(add_one, devices=two)
    x = failing(np.zeros(2))
    with pytest.raises(rt.ComputationError, match="fail raised IndexError: only integers") as caught:
        after(x).numpy(PATIENCE_S)
    assert 'return x["no such thing"]' in str(caught.value)
    assert "in test_an_error_has_the_traceback" in str(caught.value)
    assert values(after(np.zeros(2))) == [[1, 1]]


def test_a_function_that_changes_its_shapes_is_refused_by_name(runtime: rt.LocalRuntime) -> None:
    (one,) = slices(runtime, 2)
    with pytest.raises(rt.ComputationError, match=r"grow: stated that it returns \(float64\[1\]\), and returned"):
        rt.pmap(grow, devices=one)(np.zeros(2)).numpy(PATIENCE_S)


class Kept:
    """Stands in for a runtime while a call is traced, and keeps its program."""

    traced: TracedProgram

    def run(self, traced: TracedProgram, arguments: Sequence[Any]) -> list[Any]:
        self.traced = traced
        return list(arguments)


@dataclass(frozen=True)
class KeptDevices:
    number: int
    size: int
    runtime: Kept


@pytest.mark.parametrize(
    ("given", "got"),
    [(np.zeros(4), "float64[4]"), (np.zeros((2, 1)), "float64[2,1]"), (np.zeros(2, "int64"), "int64[2]")],
)
def test_a_handle_whose_array_does_not_match_is_refused_by_name(runtime: rt.LocalRuntime, given: Any, got: str) -> None:
    (one,) = slices(runtime, 2)
    kept = Kept()
    rt.pmap(scale, devices=KeptDevices(one.number, one.size, kept))(np.zeros(2), np.zeros(2))
    add = rt.pmap(add_one, devices=one)
    held, fitting = add(given), add(np.zeros(2))
    (refused,) = runtime.run(kept.traced, [fitting, held])
    after = add(refused)
    for each in (refused, after):
        with pytest.raises(rt.RefusedError, match=re.escape(f"scale: argument 1: expected float64[2], got {got}")):
            each.numpy(PATIENCE_S)
    with pytest.raises(ValueError, match=re.escape(f"expected float64[2] as an argument, got {got}")):
        runtime.run(kept.traced, [fitting, given])
    assert (held.numpy(PATIENCE_S) == given + 1).all()
    (made,) = runtime.run(kept.traced, [fitting, fitting])
    assert values(made) == [[1, 1]]


def test_a_handle_that_cannot_be_cut_is_refused_by_name(runtime: rt.LocalRuntime) -> None:
    one, two = slices(runtime, 1, 2)
    held = rt.pmap(add_one, devices=one)(np.zeros(3))
    with pytest.raises(ValueError, match=r"double: axis 0 of float64\[3\] cannot be cut into 2 equal blocks"):
        rt.pmap(double, devices=two)(held)
    with pytest.raises(ValueError, match=r"double: float64\[3\] has no axis 1"):
        rt.pmap(double, devices=two, in_axes=1)(held)
    assert values(held) == [[1, 1, 1]]


def test_slices_that_no_island_has_are_refused_by_name(runtime: rt.LocalRuntime) -> None:
    devices = runtime.make_virtual_device_set()
    with pytest.raises(rt.RefusedError, match=r"5"):
        devices.add_slice(5)
    with pytest.raises(rt.RefusedError, match="atlantis"):
        devices.add_slice(1, island="atlantis")


def test_timers_of_a_gang_run_side_by_side(runtime: rt.LocalRuntime) -> None:
    (one,) = slices(runtime, 4)
    wait = rt.pmap(rt.timer(0.2), devices=one)
    started_s = time.monotonic()
    assert values(wait(np.ones(4))) == [[0, 0, 0, 0]]
    assert time.monotonic() - started_s >= 0.2


def test_gangs_run_in_one_order_on_all_devices(runtime: rt.LocalRuntime) -> None:
    (one,) = slices(runtime, 4)
    x: Any = np.zeros(4)
    wait, add = rt.pmap(rt.timer(0.001, name="pause"), devices=one), rt.pmap(add_one, devices=one)
    for _ in range(20):
        x = add(wait(x))
    x.wait(PATIENCE_S)
    rows: dict[tuple[int, int], list[tuple[int, str]]] = {}
    for event in runtime.trace():
        if event["ph"] == "X":
            rows.setdefault((event["pid"], event["tid"]), []).append((event["args"]["execution"], event["name"]))
    orders = [row[-40:] for row in rows.values() if any(name == "pause" for _, name in row)]
    assert len(orders) == 4
    assert all(order == orders[0] for order in orders)
    assert [name for _, name in orders[0]] == ["pause", "add_one"] * 20


def test_strangers_are_refused(runtime: rt.LocalRuntime) -> None:
    with pytest.raises(rt.RefusedError, match="token: unknown"):
        rt.connect(runtime.address, "guess")
    assert runtime.is_open


def test_what_nobody_holds_is_forgotten(runtime: rt.LocalRuntime) -> None:
    (one,) = slices(runtime, 4)
    step = rt.pmap(add_one, devices=one)
    x: Any = np.zeros(4)
    for _ in range(50):
        x = step(x)
    x.wait(PATIENCE_S)
    until_s = time.monotonic() + PATIENCE_S
    while time.monotonic() < until_s:
        status = runtime.status()
        if all(host["handles"] <= 1 and not host["executions"] for host in status["hosts"]):
            return
        gc.collect()  # errors of earlier tests hold frames, and these arrays
        time.sleep(0.1)
    pytest.fail(f"handles are left: {status}")


def pid_of(runtime: rt.Runtime, host: int) -> int:
    return next(each["pid"] for each in runtime.status()["hosts"] if each["host"] == host)


def test_a_killed_executor_fails_what_depends_on_it_and_nothing_else() -> None:
    with rt.local(islands=2, hosts=1, devices=2) as runtime:
        one, two = slices(runtime, 2, 2)
        wait, add = rt.pmap(rt.timer(3600), devices=one), rt.pmap(add_one, devices=two)
        held = rt.pmap(double, devices=one)(np.ones(2)).wait(PATIENCE_S)
        dependent = add(wait(np.ones(2)))
        pid = pid_of(runtime, 0)
        os.kill(pid, signal.SIGKILL)
        with pytest.raises(rt.LostError, match="host 0 of island island-0 ended"):
            dependent.numpy(PATIENCE_S)
        with pytest.raises(rt.LostError, match="host 0 of island island-0 ended"):
            held.numpy(PATIENCE_S)
        assert values(add(np.ones(2))) == [[2, 2]]
        with pytest.raises(rt.RefusedError, match="timer: slice 0 has no devices"):
            wait(np.ones(2)).numpy(PATIENCE_S)


def test_slices_of_a_killed_executor_move_to_other_hosts() -> None:
    with rt.local(islands=1, hosts=2, devices=2) as runtime:
        (one,) = slices(runtime, 2)
        add = rt.pmap(add_one, devices=one)
        assert values(add(np.ones(2))) == [[2, 2]]
        epoch = runtime.status()["epoch"]
        (busy,) = [host["pid"] for host in runtime.status()["hosts"] if sum(host["busy_s"])]
        os.kill(busy, signal.SIGKILL)
        until_s = time.monotonic() + PATIENCE_S
        while runtime.status()["epoch"] == epoch and time.monotonic() < until_s:
            time.sleep(0.01)
        assert values(add(np.ones(2))) == [[2, 2]]


def test_what_a_client_leaves_behind_is_forgotten(runtime: rt.LocalRuntime) -> None:
    loaded = [host["loaded"] for host in runtime.status()["hosts"]]
    other = rt.connect(runtime.address, runtime.tokens["local"])
    (one,) = slices(other, 2)
    rt.pmap(rt.timer(60), devices=one)(np.ones(2))
    kept = rt.pmap(double, devices=one)(np.ones(2))
    assert len(runtime.status()["clients"]) == 2
    other.close()
    with pytest.raises(rt.DisconnectedError, match="the client is closed"):
        kept.numpy(PATIENCE_S)
    until_s = time.monotonic() + PATIENCE_S
    while len(runtime.status()["clients"]) > 1 and time.monotonic() < until_s:
        time.sleep(0.01)
    status = runtime.status()
    assert not any(host["executions"] or sum(host["queued"]) for host in status["hosts"])
    assert [host["loaded"] for host in status["hosts"]] == loaded
    (two,) = slices(runtime, 2)
    assert values(rt.pmap(add_one, devices=two)(np.zeros(2))) == [[1, 1]]


def test_a_killed_server_ends_executors_and_fails_what_waits() -> None:
    with rt.local(islands=1, hosts=1, devices=1) as runtime:
        (one,) = slices(runtime, 1)
        waiting = rt.pmap(rt.timer(60), devices=one)(np.ones(1))
        status = runtime.status()
        executor = status["hosts"][0]["pid"]
        os.kill(status["pid"], signal.SIGKILL)
        with pytest.raises(rt.DisconnectedError, match="the server is gone"):
            waiting.numpy(PATIENCE_S)
        with pytest.raises(rt.DisconnectedError, match="the server is gone"):
            rt.pmap(add_one, devices=one)(np.ones(1))
        until_s = time.monotonic() + PATIENCE_S
        while is_running(executor) and time.monotonic() < until_s:
            time.sleep(0.01)
        assert not is_running(executor)


def test_sequential_dispatch_computes_the_same() -> None:
    with rt.local(islands=2, hosts=2, devices=1, dispatch="sequential", preparation_s=1e-3) as runtime:
        one, two = slices(runtime, 2, 2)
        here, there = rt.pmap(add_one, devices=one), rt.pmap(double, devices=two)

        @rt.program
        def f(v: Any) -> Any:
            x = there(here(v))
            return here(x), there(x)

        for _ in range(3):
            assert values(*f(np.array([1.0, 2.0]))) == [[5, 7], [8, 12]]


def test_shares_follow_weights(tmp_path: Path) -> None:
    gate = str(tmp_path / "gate")

    @rt.function(library="numpy", outputs=same)
    def wait_for_gate(x: Any) -> Any:
        while not Path(gate).exists():
            time.sleep(0.01)
        return x

    with rt.local(devices=1, policy="shares", weights={"light": 1, "heavy": 3}) as runtime:
        (one,) = slices(runtime, 1)
        rt.pmap(wait_for_gate, devices=one)(np.ones(1))
        started = []
        for name in ("light", "heavy"):
            client = rt.connect(runtime.address, runtime.tokens[name])
            wait = rt.pmap(rt.timer(0.03), devices=client.make_virtual_device_set().add_slice(1))
            started.append((client, [wait(np.ones(1)) for _ in range(40)]))
        for client, _ in started:
            client.status()  # the server has taken all that came before
        Path(gate).touch()
        (light, of_light), (heavy, of_heavy) = started
        of_heavy[-1].wait(PATIENCE_S)
        (account,) = [each for each in runtime.status()["clients"] if each["client"].startswith("light")]
        assert account["executions"] > 5  # by equal shares it would have one or two left
        of_light[-1].wait(PATIENCE_S)
        light.close()
        heavy.close()


def is_running(pid: int) -> bool:
    """Whether a process runs; one that has ended and that nobody has waited for does not."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except FileNotFoundError:
        return False
