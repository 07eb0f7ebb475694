from itertools import permutations
from typing import cast

import pytest

from runtime.arrays import ArraySpec, Sharding
from runtime.lowering.assign import Layout, Placement
from runtime.messages import Failure, ReleaseOn, Sized
from runtime.server.accounts import Account, HeldArray, Ledger
from runtime.server.channel import Channel
from runtime.server.hosts import Host
from runtime.server.settings import ClientSettings, Quota
from runtime.server.sizes import Sizes

CLIENT, HANDLE = 3, 7
LAYOUT = Layout(Sharding(0, 2), Placement("island", (0, 1), (0, 0)))


class Recorder:
    """The channel of a host or a client, which notes what is sent."""

    def __init__(self) -> None:
        self.sent: list[object] = []

    def send(self, message: object) -> None:
        self.sent.append(message)


class Told:
    """A server that holds one array, and hears of its shards."""

    def __init__(self, most_bytes: int | None = None) -> None:
        self.channels = [Recorder() for _ in LAYOUT.placement.hosts]
        hosts = {
            number: Host(number, "island", cast("Channel", channel), "") for number, channel in enumerate(self.channels)
        }
        settings = ClientSettings("someone", "token", quota=Quota(most_bytes=most_bytes))
        self.account = Account(CLIENT, Ledger(settings), cast("Channel", Recorder()))
        self.held = HeldArray(ArraySpec((None, 2), "float64"), LAYOUT, 1)
        self.account.hold(HANDLE, self.held)
        self.sizes = Sizes({CLIENT: self.account}, hosts)
        self.heard: list[bool] = []
        self.held.when_ended(lambda: self.heard.append(self.held.is_there))

    def sized(self, shard: int, rows: int) -> None:
        self.sizes.take(Sized(CLIENT, HANDLE, shard, rows))


@pytest.mark.parametrize("order", list(permutations(["end", "first", "second"])))
def test_an_array_is_there_when_all_of_its_rows_are_known(order: tuple[str, ...]) -> None:
    told = Told()
    say = {
        "end": lambda: told.held.end(is_there=True),
        "first": lambda: told.sized(0, 3),
        "second": lambda: told.sized(1, 5),
    }
    for number, each in enumerate(order):
        assert told.heard == [] or order[number:] == ("end",)
        say[each]()
    assert told.heard == [True]
    assert (told.held.rows, told.held.spec) == (5, ArraySpec((16, 2), "float64", is_ragged=True))
    assert (told.held.size_bytes, told.account.ledger.held_bytes) == (8 * 16, 8 * 16)
    told.account.let_go(HANDLE)
    assert told.account.ledger.held_bytes == 0


@pytest.mark.parametrize("rows", [(-1, 2), (2, -1)])
def test_a_shard_that_will_not_be_there_ends_the_array(rows: tuple[int, int]) -> None:
    told = Told()
    told.held.end(is_there=True)
    for shard, each in enumerate(rows):
        told.sized(shard, each)
    assert (told.heard, told.held.spec.is_bounded) == ([False], False)
    assert told.account.ledger.held_bytes == 2 * 16  # the other shard is there until it is released


def test_a_shard_that_failed_ends_the_array_though_others_are_there() -> None:
    told = Told()
    told.sized(0, 2)
    told.held.end(is_there=False)
    assert told.heard == [False]


def test_what_exceeds_the_quota_fails_and_is_released() -> None:
    told = Told(most_bytes=100)
    told.sized(0, 3)
    told.sized(1, 4)
    told.held.end(is_there=True)
    assert told.heard == [False]
    assert isinstance(told.held.failure, Failure)
    assert "client someone: quota: it holds 48 of at most 100 bytes, and asks for 64 more" in told.held.failure.message
    assert told.account.ledger.held_bytes == 0
    assert [channel.sent for channel in told.channels] == [[ReleaseOn(CLIENT, (HANDLE,))]] * 2


def test_what_was_released_is_not_counted() -> None:
    told = Told()
    told.account.let_go(HANDLE)
    told.sized(0, 3)
    told.sizes.take(Sized(CLIENT + 1, HANDLE, 0, 3))
    assert told.account.ledger.held_bytes == 0
