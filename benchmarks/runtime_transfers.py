"""What it takes to pass 64 MB from one executor to another, beside a copy and beside bare sockets.

Two hosts run calls on arrays that the first one holds; the second one looks at a number of every 64 kB that come. The
time of a call is the client's, from the call until its result is there. Copies and bare sockets are timed between the
calls, and use their memory over and over, as hosts do.
"""

import socket
import time
from collections.abc import Iterator
from contextlib import contextmanager
from multiprocessing import get_context
from statistics import median
from typing import Any

import numpy as np

import runtime as rt

SIZE_BYTES = 64 << 20
LOOK_BYTES = 1 << 16
TIMES = 9
PATIENCE_S = 120.0
_WORDS = SIZE_BYTES // 8
_WORDS_PER_LOOK = LOOK_BYTES // 8
_LOOKS = SIZE_BYTES // LOOK_BYTES


@rt.function(library="numpy", outputs=lambda start: rt.ArraySpec((start.shape[0] * _WORDS // 2,), "float64"))
def half_count(start: Any) -> Any:
    """Return half of SIZE_BYTES of different numbers."""
    return np.arange(_WORDS // 2, dtype=np.float64) + start


@rt.function(library="numpy", outputs=lambda _: rt.ArraySpec((_WORDS,), "float64"))
def count(start: Any) -> Any:
    """Return SIZE_BYTES of different numbers."""
    return np.arange(_WORDS, dtype=np.float64) + start


@rt.function(library="numpy", outputs=lambda _: rt.ArraySpec((_LOOKS,), "float64"))
def sample(x: Any) -> Any:
    """Return a number of every LOOK_BYTES."""
    return x[::_WORDS_PER_LOOK]


@rt.function(library="numpy", outputs=lambda _: rt.ArraySpec((2,), "float64"))
def ends(x: Any) -> Any:
    """Return the first and the last number."""
    return x[:: _WORDS - 1]


def transfers() -> dict[str, float]:
    """Measure transfers between two hosts."""
    memcpy_s, gathered_s = _gathered()
    bare_s, sent_s = _sent()
    return {
        "shared_memory_share": memcpy_s / gathered_s,
        "tcp_share": bare_s / sent_s,
        "handle_s": _handed_over_s(),
    }


def _gathered() -> tuple[float, float]:
    """Time a copy, and two halves that the second host copies into an array of its own."""
    source, destination = np.ones(_WORDS), np.ones(_WORDS)
    with rt.local(islands=2, hosts=1, devices=2) as runtime:
        devices = runtime.make_virtual_device_set()
        make = rt.pmap(half_count, devices=devices.add_slice(2, island="island-0"))
        look = rt.pmap(sample, devices=devices.add_slice(1, island="island-1"), in_axes=None, out_axes=None)
        starts = [np.array([0.0, _WORDS // 2]), np.array([7.0, 7.0 + _WORDS // 2])]
        held = [make(start).wait(PATIENCE_S) for start in starts]
        copied_s, taken_s = [], []
        for number in range(TIMES + 2):
            began_s = time.perf_counter()
            np.copyto(destination, source)
            copied_s.append(time.perf_counter() - began_s)
            taken_s.append(_call_s(look, held[number % 2], 7.0 * (number % 2)))
    return median(copied_s[2:]), median(taken_s[2:])


def _sent() -> tuple[float, float]:
    """Time bare sockets, and what is sent over TCP."""
    with rt.local(islands=2, hosts=1, devices=1, network="tcp") as runtime, _bare_sender() as bare:
        devices = runtime.make_virtual_device_set()
        make = rt.pmap(count, devices=devices.add_slice(1, island="island-0"))
        look = rt.pmap(sample, devices=devices.add_slice(1, island="island-1"))
        held = [make(np.array([start])).wait(PATIENCE_S) for start in (0.0, 7.0)]
        destination = memoryview(bytearray(SIZE_BYTES))
        bare_s, taken_s = [], []
        for number in range(TIMES + 2):
            began_s = time.perf_counter()
            bare.send(b"1")
            _receive(bare, destination)
            bare_s.append(time.perf_counter() - began_s)
            taken_s.append(_call_s(look, held[number % 2], 7.0 * (number % 2)))
    return median(bare_s[2:]), median(taken_s[2:])


def _call_s(look: Any, held: rt.Array, start: float) -> float:
    began_s = time.perf_counter()
    looked = look(held).wait(PATIENCE_S)
    taken_s = time.perf_counter() - began_s
    assert (looked.numpy() == start + _WORDS_PER_LOOK * np.arange(_LOOKS)).all()
    return taken_s


def _handed_over_s() -> float:
    """Return the time from the end of a computation on one host until that on another begins that reads its result."""
    with rt.local(islands=2, hosts=1, devices=1) as runtime:
        devices = runtime.make_virtual_device_set()
        make = rt.pmap(count, devices=devices.add_slice(1, island="island-0"))
        look = rt.pmap(ends, devices=devices.add_slice(1, island="island-1"))

        @rt.program
        def pass_on(start: Any) -> Any:
            return look(make(start))

        for number in range(2 * TIMES):
            looked = pass_on(np.array([float(number)])).numpy(PATIENCE_S)
            assert looked.tolist() == [number, number + _WORDS - 1]
        events = [each for each in runtime.trace() if each["ph"] == "X"]
        ended_us = sorted(each["ts"] + each["dur"] for each in events if each["name"] == "count")
        began_us = sorted(each["ts"] for each in events if each["name"] == "ends")
        passed_us = [began - ended for ended, began in zip(ended_us, began_us, strict=True)]
    return median(passed_us[TIMES:]) * 1e-6


@contextmanager
def _bare_sender() -> Iterator[socket.socket]:
    """Yield a connection by TCP to a process that answers a byte with SIZE_BYTES."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        process = get_context("spawn").Process(target=_send, args=(listener.getsockname()[1],))
        process.start()
        connection, _ = listener.accept()
        with connection:
            yield connection
        process.join()


def _send(port: int) -> None:
    content = memoryview(bytes(range(256)) * (SIZE_BYTES // 256))
    with socket.create_connection(("127.0.0.1", port)) as connection:
        while connection.recv(1):
            connection.sendall(content)


def _receive(connection: socket.socket, memory: memoryview) -> None:
    while memory:
        received = connection.recv_into(memory)
        assert received, "the sender ended"
        memory = memory[received:]
