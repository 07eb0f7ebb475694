"""All-reduce of large arrays: two shards, each a thread with connections and memory of its own."""

import tempfile
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import closing
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from runtime.collectives import Reduction
from runtime.executor.shared_reductions import SharedReductions
from runtime.executor.small_reductions import COMBINE, SmallReductions
from tests.patience import PATIENCE_S

Array = np.ndarray[Any, Any]


@pytest.fixture
def folder() -> Iterator[Path]:
    with tempfile.TemporaryDirectory() as made:  # short enough for the path of a socket
        yield Path(made)


def on_both(folder: Path, call: Callable[[SharedReductions, int], Any]) -> list["Future[Any]"]:
    connections = [SmallReductions(folder / "group", index, 2) for index in range(2)]

    def work(index: int) -> Any:
        with closing(connections[index]):  # as a group does that is broken
            connections[index].join(lambda: None)
            return call(SharedReductions(connections[index], index), index)

    with ThreadPoolExecutor(2) as threads:
        return [threads.submit(work, index) for index in range(2)]


def test_both_get_the_same_bits_of_arrays_of_any_size(folder: Path) -> None:
    numbers = np.random.default_rng(0)
    reductions: list[Reduction] = ["sum", "product", "min", "max"]
    sizes = [3, 70_000, 1, 70_000, 70_001, 200_000, *[5] * 200]
    given = [numbers.standard_normal((2, size)).astype(np.float32) for size in sizes]

    def reduce(shard: SharedReductions, index: int) -> list[Array]:
        found = []
        for step, arrays in enumerate(given):
            mine = arrays[index].copy()
            shard.reduce(mine, reductions[step % 4])
            found.append(mine)
        return found

    found = [each.result(PATIENCE_S) for each in on_both(folder, reduce)]
    for step, arrays in enumerate(given):
        expected = COMBINE[reductions[step % 4]](*arrays)
        assert [each[step].tobytes() for each in found] == [expected.tobytes()] * 2


def test_arrays_of_different_sizes_are_refused(folder: Path) -> None:
    for sizes in ((100, 200), (1000, 1001)):  # while both grow, and when they have

        def reduce(shard: SharedReductions, index: int, sizes: tuple[int, int] = sizes) -> None:
            if sizes[0] == 1000:
                shard.reduce(np.ones(2000), "sum")
            shard.reduce(np.ones(sizes[index]), "sum")

        errors = [str(each.exception(PATIENCE_S)) for each in on_both(folder, reduce)]
        assert any(f"arrays of {8 * sizes[0]} and {8 * sizes[1]} bytes" in each for each in errors)


def test_a_shard_that_ends_holds_nobody_up(folder: Path) -> None:
    def reduce_or_end(shard: SharedReductions, index: int) -> None:
        shard.reduce(np.ones(1000), "sum")
        if index == 0:
            shard.reduce(np.ones(1000), "sum")

    ended = on_both(folder, reduce_or_end)
    assert [isinstance(each.exception(PATIENCE_S), OSError) for each in ended] == [True, False]
