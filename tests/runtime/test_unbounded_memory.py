"""Rows of which no bound is known and memory: quotas, waiting for room, and what can never fit."""

import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import runtime as rt
from runtime.substrates.local import module_environment
from tests.patience import PATIENCE_S
from tests.runtime.unbounded import double, hosts, is_empty, repeated, until

QUOTAS = {"few": rt.Quota(most_bytes=200), "other": rt.Quota()}


@pytest.fixture
def small() -> Iterator[rt.LocalRuntime]:
    with rt.local(devices=2, device_memory_bytes=1000, host_memory_bytes=0, quotas=QUOTAS) as started:
        yield started


@rt.function(library="numpy", outputs=rt.ArraySpec((None,), "float64"))
def once_it_is_there(path: Any, count: Any) -> Any:
    while not Path(bytes(path).decode()).exists():
        time.sleep(0.01)
    return np.full(int(count[0]), count[0])


@pytest.mark.slow
def test_rows_count_in_the_quota_when_they_are_there(small: rt.LocalRuntime) -> None:
    def held() -> int:
        (client,) = [each for each in small.status()["clients"] if each["client"].startswith("few#")]
        return int(client["total"]["held_bytes"])

    with rt.connect(small.address, small.tokens["few"]) as client:
        two = client.make_virtual_device_set().add_slice(2)
        made, doubled = rt.pmap(repeated, devices=two), rt.pmap(double, devices=two)
        kept = made(np.array([2.0, 10.0])).wait(PATIENCE_S)
        assert held() == 8 * 12
        refused = made(np.array([4.0, 20.0]))
        with pytest.raises(rt.RefusedError, match=r"client few: quota: it holds \d+ of at most 200 bytes"):
            refused.wait(PATIENCE_S)
        with pytest.raises(rt.RefusedError, match="quota"):
            doubled(refused)
        until(lambda: held() == 8 * 12 and sum(sum(host["device_bytes"]) for host in hosts(small)) == 8 * 12)
        del kept
        until(lambda: held() == 0)
        assert len(made(np.array([4.0, 20.0])).wait(PATIENCE_S)) == 24
        del refused
        until(lambda: held() == 0)
    until(lambda: is_empty(small))


@pytest.mark.slow
def test_rows_wait_for_room_and_others_run_on(small: rt.LocalRuntime, tmp_path: Path) -> None:
    one = small.make_virtual_device_set().add_slice(1)
    fill = rt.function(library="numpy", outputs=rt.ArraySpec((75,), "float64"))(lambda x: np.full(75, x[0]))
    held = rt.pmap(fill, devices=one)(np.ones(1)).wait(PATIENCE_S)
    gate = tmp_path / "gate"
    path = np.frombuffer(str(gate).encode(), np.uint8)
    waiting = rt.pmap(once_it_is_there, devices=one, in_axes=(None, 0))(path, np.array([60.0]))  # of 400 bytes, 480
    others = rt.pmap(double, devices=one)(np.ones(3))
    until(lambda: sum(hosts(small)[0]["queued"]) == 2)  # they have their memory
    gate.touch()
    assert others.numpy(PATIENCE_S).tolist() == [2.0] * 3
    with pytest.raises(TimeoutError):
        waiting.wait(0.3)
    (host,) = hosts(small)
    assert (host["device_bytes"][0], host["stalled"], host["queued"], host["executions"]) == (624, 1, [0, 0], 0)
    del held
    assert waiting.wait(PATIENCE_S).known_spec.shape == (64,)
    until(lambda: hosts(small)[0]["device_bytes"] == [24 + 480, 0])
    assert waiting.numpy(PATIENCE_S).tolist() == [60.0] * 60
    del waiting, others
    until(lambda: is_empty(small))


@pytest.mark.slow
def test_rows_that_can_never_fit_fail_by_name(small: rt.LocalRuntime) -> None:
    two = small.make_virtual_device_set().add_slice(2)
    made, doubled = rt.pmap(repeated, devices=two), rt.pmap(double, devices=two)
    for counts in ((1.0, 126.0), (200.0, 200.0)):
        failed = made(np.array(counts))
        for ask in (failed.wait, failed.numpy):
            with pytest.raises(rt.RefusedError, match=r"repeated: .* exceed the 1,000 of device [01]"):
                ask(PATIENCE_S)
        with pytest.raises(rt.RefusedError, match="exceed the 1,000"):
            doubled(failed)
    assert len(made(np.array([125.0, 125.0])).numpy(PATIENCE_S)) == 250
    del failed, ask
    until(lambda: is_empty(small))


VICTIM = """
import sys
import numpy
import runtime as rt
from tests.runtime.unbounded import repeated

client = rt.connect(*sys.argv[1:])
both = client.make_virtual_device_set().add_slice(2)
waiting = rt.pmap(repeated, devices=both)(numpy.array([50.0, 60.0]))
try:
    waiting.wait(0.2)
except TimeoutError:
    print("waits", flush=True)
sys.stdin.readline()
del waiting
client.status()
print("released", flush=True)
sys.stdin.readline()
"""


@pytest.mark.slow
@pytest.mark.parametrize("is_released", [True, False], ids=["released", "killed"])
def test_rows_that_wait_for_room_are_given_up_with_who_wants_them(small: rt.LocalRuntime, is_released: bool) -> None:
    def state() -> tuple[list[int], int]:
        (host,) = hosts(small)
        return sorted(host["device_bytes"]), host["stalled"]

    one = small.make_virtual_device_set().add_slice(1)
    held: Any = rt.pmap(repeated, devices=one)(np.array([100.0])).wait(PATIENCE_S)
    command = [sys.executable, "-c", VICTIM, small.address, small.tokens["other"]]
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=module_environment()
    ) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        assert process.stdout.readline() == "waits\n"
        until(lambda: state() in (([400, 800], 1), ([480, 800], 1)))
        if is_released:
            process.stdin.write("\n")
            process.stdin.flush()
            assert process.stdout.readline() == "released\n"
            until(lambda: state() == ([0, 800], 0))
        process.kill()
    until(lambda: state() == ([0, 800], 0))
    assert len(rt.pmap(repeated, devices=one)(np.array([25.0])).wait(PATIENCE_S)) == 25
    del held
    until(lambda: is_empty(small))
