"""The loop of an executor answers all the time, however large the arrays are that pass."""

import time
from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path
from threading import get_ident
from typing import Any

import numpy as np
import pytest

from runtime.arrays import ArraySpec, Sharding
from runtime.executor.assembly import Assembly
from runtime.executor.copies import AT_ONCE_BYTES, Copies
from runtime.executor.loop import Loop
from runtime.lowering.resharding import Piece
from runtime.lowering.subprograms import Edge, Receipt, Send
from runtime.program import Value
from tests.patience import PATIENCE_S
from tests.runtime.peer_hosts import Host, two_hosts

pytestmark = pytest.mark.slow

SIDE = 1 << 13
MOST_S = 0.05
_HALF = (slice(0, SIDE), slice(0, SIDE // 2))
SEND = Send(3, 1, Piece(0, 0, _HALF, _HALF), False)


class Turns:
    """How much processor time the longest turn of a loop takes: other work on the machine does not count."""

    def __init__(self, loop: Loop) -> None:
        self.longest_s = 0.0
        self.number = 0
        self._loop = loop
        self._began_s: float | None = None
        loop.post(self._turn)

    def _turn(self) -> None:
        now_s = time.thread_time()
        if self._began_s is not None:
            self.longest_s = max(self.longest_s, now_s - self._began_s)
        self._began_s = now_s
        self.number += 1
        self._loop.at(time.perf_counter() + 1e-3, self._turn)


@pytest.fixture(params=["local", "remote"])
def hosts(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[tuple[Host, Host]]:
    addresses = (
        [f"unix:{tmp_path}/{number}" for number in range(2)] if request.param == "local" else ["127.0.0.1:0"] * 2
    )
    with two_hosts(*addresses, room_bytes=1 << 30) as found:
        yield found


def test_loops_turn_while_256_mb_are_cut_sent_and_put_together(hosts: tuple[Host, Host]) -> None:
    """Neither half of the columns lies in a row: the sender copies it, and so does the receiver."""
    sender, receiver = hosts
    turns = [sender.do(partial(Turns, sender.loop)), receiver.do(partial(Turns, receiver.loop))]
    x = np.arange(SIDE * SIDE, dtype=np.float32).reshape(SIDE, SIDE)
    spec, copies = ArraySpec((SIDE, SIDE), "float32"), Copies(receiver.loop)
    edge = Edge(3, Value(0), spec, Sharding(1, 2), 0, Sharding(None, 1), 0, ((1, 0),))
    whole: list[bool] = []
    assembly = receiver.do(
        lambda: Assembly(
            Receipt(edge, 0, 2, spec.shape, False, False),
            receiver.arrays.empty,
            copies.copy,
            lambda: whole.append(True),
        )
    )
    halves = [slice(0, SIDE // 2), slice(SIDE // 2, SIDE)]
    for number, columns in enumerate(halves):
        sender.send(number, x[:, columns])  # by its execution, the test knows which half it is
    for _ in halves:
        (number, *_), data = receiver.next()
        half = np.frombuffer(data, np.float32).reshape(SIDE, SIDE // 2)
        piece = Piece(number, 0, _HALF, (slice(0, SIDE), halves[number]))
        receiver.do(partial(assembly.add, piece, half))
    del data, half
    end_s = time.monotonic() + PATIENCE_S
    while not whole:
        assert time.monotonic() < end_s
        time.sleep(0.01)
    assert assembly.whole is not None
    assert (assembly.whole == x).all()
    assert all(each.number > 10 for each in turns)
    assert max(each.longest_s for each in turns) < MOST_S


def test_large_copies_and_many_small_ones_run_in_a_thread() -> None:
    loop, threads = Loop(), list[int]()
    copies = Copies(loop)

    class Noted(np.ndarray[Any, Any]):
        """An array that notes which thread copies it."""

        def __array_function__(self, *_: Any) -> Any:
            threads.append(get_ident())

    def noted(size_bytes: int) -> Any:
        return np.zeros(size_bytes, np.uint8).view(Noted)

    sizes: Sequence[int] = [100, AT_ONCE_BYTES, AT_ONCE_BYTES + 1, *[AT_ONCE_BYTES] * 8]
    ended: list[int] = []

    def on_done(size: int) -> None:
        ended.append(size)
        if len(ended) == len(sizes):
            loop.stop()

    def copy() -> None:
        for size in sizes:
            copies.copy(noted(size), noted(size), partial(on_done, size))

    loop.post(copy)
    loop.run()
    own = [each == get_ident() for each in threads]
    assert sorted(ended) == sorted(sizes)
    assert (own.count(True), own.count(False)) == (8, 3)
    assert loop.busy_threads == 0
