"""All-reduce of small arrays: each shard is a thread, with connections of its own."""

import tempfile
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import ExitStack, closing
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from runtime.addresses import dialled
from runtime.collectives import Reduction
from runtime.executor import small_reductions
from runtime.executor.small_reductions import SmallReductions
from tests.patience import PATIENCE_S

Array = np.ndarray[Any, Any]


@pytest.fixture
def folder() -> Iterator[Path]:
    with tempfile.TemporaryDirectory() as made:  # short enough for the path of a socket
        yield Path(made)


def on_all(shards: list[SmallReductions], call: Callable[[SmallReductions, int], Any]) -> list["Future[Any]"]:
    with ThreadPoolExecutor(len(shards)) as threads:
        return [threads.submit(call, each, index) for index, each in enumerate(shards)]


def joined(stack: ExitStack, folder: Path, size: int) -> list[SmallReductions]:
    shards = [SmallReductions(folder / "group", index, size) for index in range(size)]
    for each in on_all(shards, lambda shard, _: shard.join(lambda: None)):
        each.result(PATIENCE_S)
    for shard in shards:
        stack.enter_context(closing(shard))
    return shards


@pytest.mark.parametrize("size", [2, 3, 4, 5, 7, 8])
def test_all_shards_get_the_same_bits(folder: Path, size: int) -> None:
    given = np.random.default_rng(size).standard_normal((size, 3)).astype(np.float32)
    expected: dict[Reduction, Array] = {
        "sum": given.sum(axis=0),
        "product": given.prod(axis=0),
        "min": given.min(axis=0),
        "max": given.max(axis=0),
    }

    def reduce(shard: SmallReductions, index: int) -> list[Array]:
        reduced = []
        for reduction in expected:
            mine = given[index].copy()
            shard.reduce(mine, reduction)
            reduced.append(mine)
        return reduced

    with ExitStack() as stack:
        found = [each.result(PATIENCE_S) for each in on_all(joined(stack, folder, size), reduce)]
    for reduced in found:
        assert [each.tobytes() for each in reduced] == [each.tobytes() for each in found[0]]
        for one, other in zip(reduced, expected.values(), strict=True):
            np.testing.assert_allclose(one, other, rtol=1e-5)


def test_whole_numbers_wrap_round_as_those_of_gloo(folder: Path) -> None:
    def reduce(shard: SmallReductions, _: int) -> list[int]:
        mine = np.array([200, 1], np.uint8)
        shard.reduce(mine, "sum")
        return list(mine.tolist())

    with ExitStack() as stack:
        found = [each.result(PATIENCE_S) for each in on_all(joined(stack, folder, 2), reduce)]
    assert found == [[144, 2], [144, 2]]


def test_a_shard_that_ends_its_connections_holds_nobody_up(folder: Path) -> None:
    def reduce_or_end(shard: SmallReductions, index: int) -> None:
        if index == 2:
            shard.close()
            return
        try:
            shard.reduce(np.ones(1), "sum")
        finally:
            shard.close()  # as a group does that is broken

    with ExitStack() as stack:
        ended = on_all(joined(stack, folder, 5), reduce_or_end)
    assert [isinstance(each.exception(PATIENCE_S), OSError) for each in ended] == [True, True, False, True, True]


def test_arrays_of_different_sizes_are_refused(folder: Path) -> None:
    def reduce(shard: SmallReductions, index: int) -> None:
        try:
            shard.reduce(np.ones(1 + index), "sum")
        finally:
            shard.close()

    with ExitStack() as stack:
        ended = on_all(joined(stack, folder, 2), reduce)
    assert any("arrays of 8 and 16 bytes" in str(each.exception(PATIENCE_S)) for each in ended)


def test_a_shard_that_will_not_come_is_waited_for_until_somebody_says_so(folder: Path) -> None:
    class GoneError(Exception):
        pass

    looked: list[int] = []

    def check() -> None:
        looked.append(1)
        if len(looked) == 3:
            raise GoneError

    shard = SmallReductions(folder / "group", 0, 2)
    with pytest.raises(GoneError):
        shard.join(check)
    shard.close()
    assert list(folder.iterdir()) == []


def test_strangers_are_turned_away(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    shards = [SmallReductions(folder / "group", index, 2) for index in range(2)]
    silent, wrong, gone = (dialled(f"unix:{folder}/group-0") for _ in range(3))
    wrong.sendall((7).to_bytes(4, "big"))
    gone.close()
    monkeypatch.setattr(small_reductions, "_GREETING_S", 0.2)
    with ExitStack() as stack:
        for each in [*shards, silent, wrong]:
            stack.enter_context(closing(each))
        for each in on_all(shards, lambda shard, _: shard.join(lambda: None)):
            each.result(PATIENCE_S)
        assert wrong.recv(1) == silent.recv(1) == b""


def test_another_user_is_turned_away(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    class TurnedAwayError(Exception):
        pass

    refused: list[int] = []

    def refuse(_: object) -> None:
        refused.append(1)
        raise PermissionError

    def check() -> None:
        if refused:
            raise TurnedAwayError

    monkeypatch.setattr(small_reductions, "check_user", refuse)
    with closing(SmallReductions(folder / "group", 0, 2)) as shard, closing(dialled(f"unix:{folder}/group-0")) as other:
        other.sendall((1).to_bytes(4, "big"))
        with pytest.raises(TurnedAwayError):
            shard.join(check)
        with pytest.raises(ConnectionResetError):  # nobody has read what it sent
            other.recv(1)
