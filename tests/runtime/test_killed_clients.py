"""A client's process that is killed in the middle of a program, on real processes."""

import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import runtime as rt
from runtime.substrates.local import module_environment
from tests.patience import PATIENCE_S

pytestmark = pytest.mark.slow

HOST_KEYS = ("handles", "size_bytes", "device_bytes", "spilled_bytes", "stalled", "executions", "loaded", "queued")

VICTIM = """
import sys
import numpy
import runtime as rt
from tests.runtime.test_killed_clients import add_one, until_it_is_there

address, token, gate = sys.argv[1:]
client = rt.connect(address, token)
devices = client.make_virtual_device_set()
here, there = (devices.add_slice(2, island=f"island-{number}") for number in range(2))
pause = rt.pmap(rt.timer(0.05), devices=here)
held = [pause(numpy.zeros(256)) for _ in range(3)]
held[-1].wait()

path = numpy.zeros(128, numpy.uint8)
path[: len(gate)] = list(gate.encode())
stuck = rt.pmap(until_it_is_there, devices=here, in_axes=(None, 0)) if gate else rt.pmap(rt.timer(3600), devices=here)
after = rt.pmap(add_one, devices=there)

@rt.program
def program(path, x):
    x = stuck(path, x) if gate else stuck(x)
    return x, after(x)

running = [program(path, numpy.ones(512)) for _ in range(3)]
ahead = rt.pmap(rt.timer(3600), devices=there)(numpy.ones(64))
client.status()  # the server has taken all that came before
print("in the middle", flush=True)
sys.stdin.read()
"""


@rt.function(library="numpy", outputs=lambda x: x)
def add_one(x: Any) -> Any:
    return x + 1


@rt.function(library="numpy", outputs=lambda _, x: x)
def until_it_is_there(path: Any, x: Any) -> Any:
    while not Path(bytes(path).rstrip(b"\0").decode()).exists():
        time.sleep(0.01)
    return x


def until(holds: Callable[[], bool]) -> None:
    end_s = time.monotonic() + PATIENCE_S
    while not holds():
        assert time.monotonic() < end_s
        time.sleep(0.01)


@contextmanager
def victim(runtime: rt.LocalRuntime, gate: str) -> Iterator[subprocess.Popen[str]]:
    """Run a client that is in the middle of programs."""
    command = [sys.executable, "-c", VICTIM, runtime.address, runtime.tokens["victim"], gate]
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=module_environment()
    ) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "in the middle\n"
        try:
            yield process
        finally:
            process.kill()


def held_by_hosts(runtime: rt.Runtime) -> list[dict[str, Any]]:
    return [{key: host[key] for key in HOST_KEYS} for host in runtime.status()["hosts"]]


def total(runtime: rt.Runtime, name: str) -> dict[str, Any]:
    (found,) = [each for each in runtime.status()["clients"] if each["client"].startswith(f"{name}#")]
    return dict(found["total"])


@pytest.mark.parametrize("is_computing", [False, True], ids=["timers", "a function that runs"])
def test_a_client_that_is_killed_in_the_middle_of_a_program_leaves_nothing(tmp_path: Path, is_computing: bool) -> None:
    gate = str(tmp_path / "gate") if is_computing else ""
    with rt.local(islands=2, hosts=1, devices=4, policy="shares", weights={"victim": 1}) as runtime:
        devices = runtime.make_virtual_device_set().add_slice(4, island="island-0")
        add = rt.pmap(add_one, devices=devices)
        x: Any = add(np.zeros(8)).wait(PATIENCE_S)
        pause = rt.pmap(rt.timer(0.02), devices=devices)
        pause(np.zeros(4)).wait(PATIENCE_S)
        until(lambda: total(runtime, "local")["held_bytes"] == 64)
        before, own = held_by_hosts(runtime), total(runtime, "local")
        with victim(runtime, gate) as process:
            of_victim = total(runtime, "victim")
            assert (of_victim["arrays"], of_victim["held_bytes"]) == (10, 3 * 2048 + 6 * 4096 + 512)
            assert held_by_hosts(runtime) != before
            process.kill()
            until(lambda: len(runtime.status()["clients"]) == 1)
            Path(tmp_path / "gate").touch()  # what runs in Python cannot be stopped
            until(lambda: held_by_hosts(runtime) == before)
        for _ in range(3):
            x = add(x)
        assert x.numpy(PATIENCE_S).tolist() == [4] * 8
        with rt.connect(runtime.address, runtime.tokens["victim"]) as again:
            of_victim = total(again, "victim")
            assert (of_victim["arrays"], of_victim["held_bytes"], of_victim["executions"]) == (0, 0, 3)
            assert of_victim["device_s"] == pytest.approx(3 * 2 * 0.05)
            there = again.make_virtual_device_set().add_slice(4, island="island-1")
            assert rt.pmap(add_one, devices=there)(np.zeros(4)).numpy(PATIENCE_S).tolist() == [1] * 4
        until(lambda: total(runtime, "local")["held_bytes"] == 64)
        now = total(runtime, "local")
        assert (now["arrays"], now["executions"]) == (own["arrays"], own["executions"] + 3)
