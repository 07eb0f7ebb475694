"""Arrays on their way to the client, whose connection may end meanwhile."""

import numpy as np
import pytest

from runtime import messages
from runtime.arrays import ArraySpec, Sharding
from runtime.client.arrivals import Arrival
from runtime.errors import DisconnectedError
from runtime.frames import Frame, Kind

GONE = DisconnectedError("the server is gone")


def fetched(shard: int) -> tuple[messages.Fetched, Frame]:
    message = messages.Fetched(1, shard)
    return message, Frame(Kind.MESSAGE, messages.encode(message), bytearray(np.full(2, shard, "float64").tobytes()))


def arrival() -> Arrival:
    return Arrival(ArraySpec((4,), "float64"), Sharding(0, 2), data=True)


def test_an_end_of_the_connection_after_the_last_shard_changes_nothing() -> None:
    made = arrival()
    assert not made.take(*fetched(0))
    assert made.take(*fetched(1))
    assert made.take(GONE, None)
    found = made.result(0.0)
    assert found is not None
    assert found.tolist() == [0, 0, 1, 1]


def test_a_shard_after_the_end_of_the_connection_changes_nothing() -> None:
    made = arrival()
    assert not made.take(*fetched(0))
    assert made.take(GONE, None)
    assert made.take(*fetched(1))
    with pytest.raises(DisconnectedError, match="gone"):
        made.result(0.0)
