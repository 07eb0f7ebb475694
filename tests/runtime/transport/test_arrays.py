import gc
from collections.abc import Callable
from threading import Thread
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from runtime.transport.arena import Arena
from runtime.transport.arrays import LEAST_BYTES, ArenaArrays, Array

ROOM_BYTES = 16 * LEAST_BYTES
ITEMS = LEAST_BYTES // 8


@pytest.fixture
def arrays() -> ArenaArrays:
    return ArenaArrays(Arena(ROOM_BYTES))


def test_large_arrays_that_numpy_makes_lie_in_the_arena_until_nobody_has_them(arrays: ArenaArrays) -> None:
    with arrays.used():
        before = np.arange(2.0 * ITEMS)
        made = before + 1
        small = np.zeros(ITEMS - 1)
    after = np.zeros(ITEMS)
    assert arrays.offset_bytes(made) == 2 * LEAST_BYTES
    assert arrays.offset_bytes(made[3:]) == 2 * LEAST_BYTES + 24
    assert arrays.offset_bytes(small) is None
    assert arrays.offset_bytes(after) is None
    assert bytes(arrays.arena.segment.part(2 * LEAST_BYTES + 8, 8)) == np.float64(2).tobytes()
    part = made[5:7]
    del made, before
    assert arrays.arena.used_bytes == 2 * LEAST_BYTES
    assert part.tolist() == [6, 7]
    del part
    assert arrays.arena.used_bytes == 0


def test_memory_that_was_used_before_is_zeroed_and_grows(arrays: ArenaArrays) -> None:
    first = arrays.empty((ITEMS,), "float64")
    first[:] = 7
    del first
    with arrays.used():
        zeros = np.zeros(ITEMS)
        assert not zeros.any()
        zeros[:] = range(ITEMS)
        zeros.resize(3 * ITEMS, refcheck=False)
    assert arrays.offset_bytes(zeros) is not None
    assert (zeros[:ITEMS] == np.arange(ITEMS)).all()
    assert not zeros[ITEMS:].any()
    zeros.resize(10, refcheck=False)
    assert zeros.tolist() == list(range(10))
    del zeros
    assert arrays.arena.used_bytes == 0


def test_where_the_arena_has_no_room_arrays_lie_elsewhere(arrays: ArenaArrays) -> None:
    all_ = arrays.empty((ROOM_BYTES,), "uint8")
    assert arrays.offset_bytes(all_) == 0
    more = arrays.empty((ITEMS,), "float64")
    more[:] = 1
    assert arrays.offset_bytes(more) is None
    assert arrays.room((ITEMS,), np.dtype("float64")) is None
    del all_
    assert arrays.room((ITEMS,), np.dtype("float64")) is not None
    assert arrays.room((ITEMS - 1,), np.dtype("float64")) is None, "it is small"


@given(st.lists(st.tuples(st.integers(0, 5), st.integers(0, 40)), max_size=30))
def test_arrays_keep_their_content_however_they_are_made_and_freed(steps: list[tuple[int, int]]) -> None:
    arrays = _shared
    held: list[tuple[Array, int]] = []
    makers: list[Callable[[int], Any]] = [
        lambda size: np.full(size, size),
        lambda size: arrays.empty((size,), "int64"),
        lambda size: np.zeros(size, np.int64),
        lambda size: arrays.room((size,), np.dtype(np.int64)),
    ]
    with arrays.used():
        for kind, number in steps:
            if kind < len(makers):
                made = makers[kind](number * ITEMS // 4)
                if made is not None:
                    made[:] = len(held)
                    held.append((made, len(held)))
                del made
            elif held:
                held.pop(number % len(held))
    for array, content in held:
        assert (array == content).all()
    in_arena = [array.nbytes for array, _ in held if array.size and arrays.offset_bytes(array) is not None]
    assert all(size_bytes >= LEAST_BYTES for size_bytes in in_arena)
    assert arrays.arena.used_bytes == sum(in_arena)


_shared = ArenaArrays(Arena(4 * ROOM_BYTES))


def test_threads_make_arrays_side_by_side(arrays: ArenaArrays) -> None:
    wrong: list[int] = []

    def make(number: int) -> None:
        for _ in range(200):
            with arrays.used():
                made = np.full(ITEMS, number)
                cyclic: list[Any] = [np.full(ITEMS, -number)]  # freed by the garbage collector, whenever it runs
                cyclic.append(cyclic)
            if (made != number).any():
                wrong.append(number)

    threads = [Thread(target=make, args=(number,)) for number in range(1, 5)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    gc.collect()
    assert not wrong
    assert arrays.arena.used_bytes == 0
