"""Connections between hosts that live break, and hosts send what no host may send."""

import gc
import os
import signal
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import runtime as rt
from runtime.server.settings import NETWORKS
from tests.patience import PATIENCE_S
from tests.runtime.breaking import (
    close_descriptor_of_arena,
    have_no_room_for_a_descriptor,
    send_what_is_no_piece,
    shut_down,
)

pytestmark = pytest.mark.slow

ITEMS = 1 << 21
"""16 MB: more than sockets take at once."""
SMALL = np.zeros(1)
_SILENCE_S = 30
"""After which a host knows of a peer that falls silent. Of one that goes it knows at once."""
add_one = rt.function(library="numpy", outputs=lambda x: x)(lambda x: x + 1)


@rt.function(library="numpy", outputs=lambda x, _: x)
def add_when_there_is(x: Any, path: Any) -> Any:
    """Wait for a file, whose name is an array of bytes, and then read the input."""
    import time
    from pathlib import Path

    name = bytes(path).decode()
    Path(f"{name}-waiting").touch()
    while not Path(name).exists():
        time.sleep(0.001)
    return x + 1


@pytest.fixture(params=NETWORKS)
def runtime(request: pytest.FixtureRequest) -> Iterator[rt.LocalRuntime]:
    with rt.local(islands=2, hosts=1, devices=2, network=request.param) as started:
        yield started


def placed(runtime: rt.Runtime, function: Any, host: int, **axes: Any) -> Any:
    slice_ = runtime.make_virtual_device_set().add_slice(1, island=f"island-{host}")
    return rt.pmap(function, devices=slice_, **axes)


def until(holds: Callable[[], bool]) -> None:
    end_s = time.monotonic() + PATIENCE_S
    while not holds():
        assert time.monotonic() < end_s
        time.sleep(0.01)


def connected(runtime: rt.LocalRuntime) -> rt.Runtime:
    """A client of its own: when it ends, the runtime forgets what it holds, whatever else refers to that here."""
    return rt.connect(runtime.address, runtime.tokens["local"])


def hosts_of(runtime: rt.Runtime) -> list[dict[str, Any]]:
    return sorted(runtime.status()["hosts"], key=lambda host: int(host["host"]))


def is_nothing_left(runtime: rt.Runtime) -> bool:
    gc.collect()
    numbers = ("shared_bytes", "lent", "executions", "waiting_pieces", "handles", "spilled_bytes")
    return all(
        not any(host[each] for each in numbers) and not sum(host["device_bytes"]) and not sum(host["queued"])
        for host in hosts_of(runtime)
    )


@contextmanager
def stopped(pid: int) -> Iterator[None]:
    """Let a process do nothing for a while."""
    os.kill(pid, signal.SIGSTOP)
    try:
        yield
    finally:
        os.kill(pid, signal.SIGCONT)


@pytest.mark.parametrize(
    ("breaks", "says"),
    [
        (shut_down, "the connection from host 0 to host 1 ended: "),
        (send_what_is_no_piece, "host 1 refused a frame of host 0: expected a piece, got a frame of kind 3"),
    ],
    ids=["broken", "malformed"],
)
@pytest.mark.parametrize("items", [ITEMS, 100], ids=["large", "small"])
def test_what_a_connection_loses_fails_by_name_and_nothing_else(
    runtime: rt.LocalRuntime, breaks: Any, says: str, items: int
) -> None:
    with connected(runtime) as client:
        lose_and_go_on(client, breaks, says, np.arange(float(items)))
    until(lambda: is_nothing_left(runtime))


def lose_and_go_on(runtime: rt.Runtime, breaks: Any, says: str, x: np.ndarray[Any, Any]) -> None:
    here, there, alone = placed(runtime, add_one, 0), placed(runtime, add_one, 1), placed(runtime, add_one, 1)
    break_ = placed(runtime, breaks, 0)
    held = here(x).wait(PATIENCE_S)
    there(held).wait(PATIENCE_S)  # they are connected
    pid = hosts_of(runtime)[1]["pid"]
    with stopped(pid):
        if breaks is send_what_is_no_piece:
            break_(SMALL).wait(PATIENCE_S)
        lost = there(held)
        dependent = there(lost)
        other = alone(SMALL)
        if breaks is shut_down:
            break_(SMALL).wait(PATIENCE_S)
        # After the first one host 0 has sent what it was told to before. After the second one it has also noticed that
        # its connection has ended, and host 1 has been told, which otherwise would read what came before.
        for _ in range(2):
            here(SMALL).wait(PATIENCE_S)
    began_s = time.monotonic()
    with pytest.raises(rt.LostError, match=f"lambda: shard 0 of input 0: {says}"):
        lost.numpy(PATIENCE_S)
    detected_s = time.monotonic() - began_s
    with pytest.raises(rt.LostError, match=says):
        dependent.numpy(PATIENCE_S)
    assert other.numpy(PATIENCE_S).tolist() == [1]
    assert detected_s < _SILENCE_S
    assert (there(held).numpy(PATIENCE_S) == x + 2).all(), "they connect again"


def test_what_is_lent_stays_when_the_connection_breaks_until_nobody_reads_it(tmp_path: Path) -> None:
    with rt.local(islands=2, hosts=1, devices=2) as runtime:
        with connected(runtime) as client:
            x, path = np.arange(float(ITEMS)), np.frombuffer(str(tmp_path / "go").encode(), np.uint8)
            held = placed(client, add_one, 0)(x).wait(PATIENCE_S)
            waiting = placed(client, add_when_there_is, 1, in_axes=(0, None))(held, path)
            until((tmp_path / "go-waiting").exists)
            placed(client, shut_down, 0)(SMALL).wait(PATIENCE_S)
            client.release(held.handle)
            again = placed(client, add_one, 0)(-x).wait(PATIENCE_S)  # would lie there, if that were free
            assert (placed(client, add_one, 1)(again).numpy(PATIENCE_S) == 2 - x).all()
            (tmp_path / "go").touch()
            assert (waiting.numpy(PATIENCE_S) == x + 2).all()
        until(lambda: is_nothing_left(runtime))


@pytest.mark.parametrize(
    ("host", "breaks"),
    [(1, have_no_room_for_a_descriptor), (0, close_descriptor_of_arena)],
    ids=["reader has none", "lender has none"],
)
def test_where_the_memory_of_a_host_cannot_be_had_arrays_are_sent(host: int, breaks: Any) -> None:
    with rt.local(islands=2, hosts=1, devices=2) as runtime:
        with connected(runtime) as client:
            placed(client, breaks, host)(SMALL).wait(PATIENCE_S)
            x = np.arange(float(ITEMS))
            here, there = placed(client, add_one, 0), placed(client, add_one, 1)
            for number in range(3):
                assert (there(here(x + number)).numpy(PATIENCE_S) == x + number + 2).all()
        until(lambda: is_nothing_left(runtime))
        assert Path(f"/proc/{hosts_of(runtime)[1]['pid']}/maps").read_text().count("memfd:trainyard") == 1
