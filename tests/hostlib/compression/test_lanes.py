"""Transmissions in the two threads: in order, one collective at a time, and errors that reach whoever waits."""

import threading
import time
from collections.abc import Callable, Generator
from dataclasses import dataclass
from typing import Any

import pytest
import torch

from hostlib.compression.collectives import Exchange, Operation, Ranks
from hostlib.compression.lanes import Carried, Lanes
from tests.patience import PATIENCE_S

RANKS = Ranks(None, 0, 2, "gloo")
CPU = torch.device("cpu")


@dataclass
class Step:
    """Stands for a collective."""

    run_it: Callable[[], Any]

    def run(self, _ranks: Ranks) -> Any:
        return self.run_it()

    def sent_bytes(self, _ranks: Ranks) -> int:
        return 7


def lanes() -> Lanes:
    return Lanes(RANKS, CPU)


def test_collectives_go_one_after_the_other_while_the_next_is_encoded() -> None:
    seen: list[str] = []
    encoded = threading.Event()

    def first() -> Generator[Step | None, Any, torch.Tensor]:
        # It ends only once the second one is encoded, so encoding does not wait for it.
        yield Step(lambda: seen.append(f"first sent {encoded.wait(PATIENCE_S)}"))
        yield None
        return torch.tensor(1)

    def second() -> Generator[Step | None, Any, torch.Tensor]:
        encoded.set()
        result = yield Step(lambda: seen.append("second sent") or 5)
        seen.append(f"second got {result}")
        yield Step(lambda: seen.append("second sent again"))
        return torch.tensor(2)

    both, carried = lanes(), [Carried(), Carried()]
    futures = [both.carry(each(), kept) for each, kept in zip((first, second), carried, strict=True)]
    assert [int(future.wait()) for future in futures] == [1, 2]
    assert seen == ["first sent True", "second sent", "second got 5", "second sent again"]
    assert [each.sent_bytes for each in carried] == [7, 14]
    assert carried[0].between_s == 0
    assert carried[1].between_s > 0
    assert all(each.ready_s <= each.encoded_s <= each.completed_s for each in carried)
    assert carried[0].completed_s <= carried[1].completed_s


class Exchanged(Exchange):
    """Stands for an exchange that takes a while."""

    def run(self, _ranks: Ranks) -> list[torch.Tensor]:
        time.sleep(0.02)
        return []

    def sent_bytes(self, _ranks: Ranks) -> int:
        return 7


def test_exchanges_alone_are_timed_as_such() -> None:
    def scattered() -> Generator[Operation | None, Any, torch.Tensor]:
        yield Exchanged((), ())
        yield Step(lambda: time.sleep(0.02))
        return torch.tensor(0)

    carried = Carried()
    lanes().carry(scattered(), carried).wait()
    assert 0.02 <= carried.exchange_s <= carried.completed_s - carried.encoded_s - 0.02


def test_an_error_fails_its_transmission_and_all_later_ones() -> None:
    def failing() -> Generator[Step | None, Any, torch.Tensor]:
        yield Step(lambda: 1 / 0)
        return torch.tensor(0)

    def working() -> Generator[Step | None, Any, torch.Tensor]:
        yield Step(lambda: None)
        return torch.tensor(0)

    both = lanes()
    assert both.carry(working(), Carried()).wait() == 0
    futures = [both.carry(each(), Carried()) for each in (failing, working)]
    for future in futures:
        with pytest.raises(RuntimeError, match="ZeroDivisionError"):
            future.wait()


@pytest.mark.parametrize("where", ["encoding", "decoding"])
def test_an_error_in_computing_reaches_whoever_waits(where: str) -> None:
    def failing() -> Generator[Step | None, Any, torch.Tensor]:
        if where == "encoding":
            raise ArithmeticError(where)
        yield Step(lambda: None)
        yield None
        raise ArithmeticError(where)

    with pytest.raises(RuntimeError, match=f"ArithmeticError: {where}"):
        lanes().carry(failing(), Carried()).wait()


def test_a_transmission_without_a_collective_returns() -> None:
    def nothing() -> Generator[Step | None, Any, torch.Tensor]:
        yield from ()
        return torch.tensor(3)

    carried = Carried()
    assert lanes().carry(nothing(), carried).wait() == 3
    assert carried.sent_bytes == 0
