"""Copies of large arrays: in parts, by two threads, as long as there is a core for the second one."""

import os
from collections.abc import Callable, Sequence
from functools import partial
from threading import Barrier, get_ident
from typing import Any

import numpy as np
import pytest

from runtime.executor.copies import PART_BYTES, Copies, Spare, parts_of
from runtime.executor.loop import Loop
from tests.patience import PATIENCE_S

_TWO_CORES = pytest.mark.skipif(len(os.sched_getaffinity(0)) < 2, reason="needs two cores")


def copied(pairs: Sequence[tuple[Any, Any]]) -> None:
    """Copy arrays to others in a turn of a loop, and wait until all have ended."""
    loop = Loop()
    copies, left = Copies(loop), list(pairs)

    def end() -> None:
        left.pop()
        if not left:
            loop.stop()

    def copy() -> None:
        for to, source in pairs:
            copies.copy(to, source, end)

    loop.post(copy)
    loop.run()
    assert loop.busy_threads == 0


def watched(size_bytes: int, on_copy: Callable[[], object]) -> Any:
    """Return an array that calls back instead of being copied, in the thread that would."""

    class Watched(np.ndarray[Any, Any]):
        def __array_function__(self, *_: Any) -> Any:
            on_copy()

    return np.zeros(size_bytes, np.uint8).view(Watched)


@pytest.mark.parametrize(
    "shape",
    [(3 * PART_BYTES + 5,), (1, 1, 2 * PART_BYTES + 1), (2, PART_BYTES), (1025, 3 * PART_BYTES // 1024), (PART_BYTES,)],
)
def test_all_of_an_array_is_copied(shape: tuple[int, ...]) -> None:
    source = np.random.default_rng(0).integers(0, 256, shape, np.uint8)
    to = np.zeros_like(source)
    apart = np.zeros((*shape, 2), np.uint8)[..., 0]  # no two elements lie beside each other
    copied([(to, source), (apart, source)])
    assert (to == source).all()
    assert (apart == source).all()


@pytest.mark.parametrize("shape", [(), (1,), (0, 3), (PART_BYTES,), (5, PART_BYTES // 2), (1, 3, PART_BYTES // 2, 2)])
def test_parts_are_all_of_an_array_once(shape: tuple[int, ...]) -> None:
    array = np.broadcast_to(np.uint8(0), shape)
    counts = [array[part].nbytes for part in parts_of(array)]
    assert sum(counts) == array.nbytes
    assert max(counts) <= PART_BYTES


@_TWO_CORES
def test_two_threads_copy_at_once() -> None:
    both = Barrier(2)
    array = watched(2 * PART_BYTES, partial(both.wait, PATIENCE_S))
    copied([(array, array)])
    assert not both.broken


@_TWO_CORES
def test_the_second_thread_sits_out_where_others_need_its_core(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Spare, "is_there", False)
    threads: list[int] = []
    array = watched(8 * PART_BYTES, lambda: threads.append(get_ident()))
    copied([(array, array)])
    assert len(threads) == 8
    assert len(set(threads)) == 1


def test_a_core_is_not_spare_where_others_have_it_time_and_again() -> None:
    spare = Spare()
    spare.take(0.001, 0.003)  # whoever was there when it woke up
    assert spare.is_there
    for _ in range(100):
        spare.take(0.001, 0.0002)
    assert spare.is_there
    for _ in range(10):
        spare.take(0.001, 0.003)
        if not spare.is_there:
            return
    pytest.fail("others have had the core for most of the time")
