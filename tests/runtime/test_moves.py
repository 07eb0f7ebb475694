"""Shards that move from host to host: what comes, what is lost on its way, and what begins again."""

from collections.abc import Callable, Sequence
from typing import Any, cast

import numpy as np
import pytest

from runtime.arrays import ArraySpec
from runtime.executor.copies import Copies
from runtime.executor.memory import HostMemory
from runtime.executor.moves import Moves, PieceRouter
from runtime.executor.store import Found, HostStore
from runtime.messages import Failure, ForgetShards, ShareOn, TakeShard
from runtime.store.buffers import HOST
from runtime.transport.arrays import ArenaArrays

SPEC = ArraySpec((4,), "float32")
DATA = np.arange(4, dtype=np.float32)


class Anywhere:
    """Stands in for an arena, and for the thread that copies."""

    def empty(self, shape: Sequence[int], dtype: Any) -> Any:
        return np.empty(shape, dtype)

    def copy(self, to: Any, source: Any, on_done: Callable[[], None]) -> None:
        np.copyto(to, source)
        on_done()


class Host:
    """A host to which shards move: what it tells the server, and what clients find."""

    def __init__(self, device_bytes: int = 1 << 20) -> None:
        self.memory = HostMemory({HOST: 0, 0: device_bytes})
        self.store = HostStore(self.memory)
        self.told: list[tuple[int, bool]] = []
        anywhere = Anywhere()
        self.moves = Moves(
            self.store, cast(ArenaArrays, anywhere), cast(Copies, anywhere), lambda *told: self.told.append(told)
        )
        self.router = PieceRouter(cast(Any, None), self.moves)

    def take(self, move: int, client: int, handle: int, shard: int) -> None:
        self.moves.take(TakeShard(move, client, handle, shard, SPEC, 0))

    def found(self, client: int, handle: int, shard: int) -> Found | None:
        found: list[Found] = []
        self.store.when_there(client, handle, shard, found.append)
        return found[0] if found else None


def sent(array: Any = DATA) -> bytearray:
    return bytearray(array.tobytes())


def test_a_shard_that_comes_is_there_and_counts() -> None:
    host = Host()
    host.take(0, 1, 5, 0)
    host.moves.receive(0, sent())
    assert np.array_equal(cast(Any, host.found(1, 5, 0)), DATA)
    assert host.told == [(0, True)]
    assert host.memory.used_bytes[0] == SPEC.size_bytes
    host.store.release(1, [5])
    assert host.memory.used_bytes[0] == 0


@pytest.mark.parametrize("is_early", [False, True])
def test_a_shard_that_is_lost_on_its_way_may_begin_again(is_early: bool) -> None:
    """Its host has it still, so nobody may hear that it has come."""
    host = Host()
    if is_early:
        host.router.lose(-1, 0, 0, 0, "the connection ended")
        host.take(0, 1, 5, 0)
    else:
        host.take(0, 1, 5, 0)
        host.router.lose(-1, 0, 0, 0, "the connection ended")
    assert host.told == [(0, False)]
    assert host.memory.used_bytes[0] == 0
    host.take(1, 1, 5, 0)
    host.moves.receive(1, sent())
    assert np.array_equal(cast(Any, host.found(1, 5, 0)), DATA)
    assert host.told == [(0, False), (1, True)]


def test_what_no_device_could_hold_has_not_come() -> None:
    host = Host(device_bytes=8)
    host.take(0, 1, 5, 0)
    assert host.told == [(0, False)]
    host.moves.receive(0, sent())
    assert host.memory.used_bytes[0] == 0


def test_why_the_host_had_no_shard_is_what_clients_find() -> None:
    host, failure = Host(), Failure("ComputationError", "it failed")
    host.take(0, 1, 5, 0)
    host.moves.receive(0, failure)
    assert host.found(1, 5, 0) == failure
    assert host.told == [(0, True)]


def test_a_move_begins_again_for_another_holder_where_a_part_of_the_array_is_already() -> None:
    """Client 2 has opened as 9 what client 1 published as 5, and lets go while shard 1 is on its way."""
    host = Host()
    host.take(0, 1, 5, 0)
    host.moves.receive(0, sent())
    host.store.share(ShareOn(1, 5, 2, 9))
    host.take(1, 1, 5, 1)
    host.store.release(1, [5])
    host.moves.forget(ForgetShards(1, 5, (1,)))
    host.take(2, 2, 9, 1)
    host.moves.receive(2, sent(2 * DATA))
    assert np.array_equal(cast(Any, host.found(2, 9, 0)), DATA)
    assert np.array_equal(cast(Any, host.found(2, 9, 1)), 2 * DATA)
    assert host.told == [(0, True), (2, True)]
    assert host.memory.used_bytes[0] == 2 * SPEC.size_bytes
    host.store.release(2, [9])
    assert host.memory.used_bytes[0] == 0
