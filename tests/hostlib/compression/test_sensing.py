"""Times of steps and counters of connections, as one rank senses them."""

import socket
import threading
import time
from collections.abc import Iterator

import pytest

from hostlib.compression.lanes import Carried
from hostlib.compression.sensing import GroupSockets, OpenedConnections, StepClock

SENT_BYTES = 300_000


@pytest.fixture
def pair() -> Iterator[tuple[socket.socket, socket.socket, GroupSockets]]:
    """Both ends of a connection, and what has opened since before it."""
    opened = OpenedConnections()
    with socket.create_server(("127.0.0.1", 0)) as listening:
        near = socket.create_connection(listening.getsockname())
        far = listening.accept()[0]
    with near, far:
        yield near, far, opened.sockets()


def test_counters_have_what_was_sent_since(pair: tuple[socket.socket, socket.socket, GroupSockets]) -> None:
    near, far, sockets = pair
    before = sockets.counters()
    sending = threading.Thread(target=near.sendall, args=(bytes(SENT_BYTES),))
    sending.start()
    left = SENT_BYTES
    while left:
        left -= len(far.recv(left))
    sending.join()
    after = sockets.counters()
    assert after.sent_bytes - before.sent_bytes == SENT_BYTES
    assert after.retransmissions >= before.retransmissions
    assert after.round_trip_s is not None
    assert 0 < after.round_trip_s < 60


def test_connections_that_are_gone_are_left_out(pair: tuple[socket.socket, socket.socket, GroupSockets]) -> None:
    near, far, sockets = pair
    near.close()
    far.close()
    assert sockets.counters().sent_bytes == 0
    assert sockets.counters().round_trip_s is None


def test_connections_from_before_are_not_the_groups(pair: tuple[socket.socket, socket.socket, GroupSockets]) -> None:
    assert pair[0].fileno() >= 0
    assert OpenedConnections().sockets().counters().round_trip_s is None


def test_a_step_is_timed_from_the_end_of_the_last_forward_pass() -> None:
    clock = StepClock()
    clock.forward_ended()
    time.sleep(0.02)
    clock.forward_ended()
    begin_s = clock.begin()
    first = [
        Carried(ready_s=begin_s + 1, encoded_s=begin_s + 1.25, completed_s=begin_s + 3),
        Carried(ready_s=begin_s + 2, encoded_s=begin_s + 2.5, completed_s=begin_s + 5, between_s=0.5, exchange_s=0.75),
    ]
    times = clock.step(begin_s, first)
    assert times.ready_s == pytest.approx((1, 2))
    assert times.network_s == pytest.approx((1.75, 2))
    assert times.exchange_s == (0, 0.75)
    assert times.backward_s == pytest.approx(2)
    assert times.step_s - times.compute_s == pytest.approx(3)
    assert times.compute_s > 2 + 0.02  # from when the clock was made
    # The next step begins where this one has ended, and its only bucket needs no network.
    later_s = begin_s + 7
    only = Carried(ready_s=later_s, encoded_s=later_s, completed_s=later_s)
    times = clock.step(begin_s + 6, [only])
    assert times.compute_s == pytest.approx(2)
    assert times.step_s == pytest.approx(2)
    assert times.network_s == (0,)


@pytest.mark.parametrize(("completed_s", "after_s"), [(-1.0, 0.0), (0.5, 0.5)])
def test_a_remainder_is_timed_after_the_buckets(completed_s: float, after_s: float) -> None:
    clock = StepClock()
    begin_s = clock.begin()
    bucket = Carried(ready_s=begin_s + 1, encoded_s=begin_s + 1, completed_s=begin_s + 3)
    remainder = Carried(begin_s - 3, begin_s - 2, begin_s + completed_s, between_s=0.25, exchange_s=0.125)
    times = clock.step(begin_s, [bucket], remainder)
    assert times.network_s == pytest.approx((2, completed_s + 2 - 0.25))
    assert times.ready_s == pytest.approx((1, after_s))
    assert times.exchange_s == (0, 0.125)
    assert times.backward_s == pytest.approx(1)
