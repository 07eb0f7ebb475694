"""The loop of an executor, and threads that take a turn of it."""

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from threading import Event, Thread, get_ident

import pytest

from runtime.executor.loop import Loop
from tests.patience import PATIENCE_S


@contextmanager
def running(loop: Loop) -> Iterator[Thread]:
    thread = Thread(target=loop.run)
    thread.start()
    try:
        yield thread
    finally:
        loop.post(loop.stop)
        thread.join(PATIENCE_S)
        assert not thread.is_alive()


def turn_of_waiting(loop: Loop, callback: Callable[[], None]) -> None:
    """Take a turn until that happens in this thread."""
    ran_in: list[int] = []

    def noted() -> None:
        ran_in.append(get_ident())

    give_up_s = time.monotonic() + PATIENCE_S
    while not ran_in or ran_in[-1] != get_ident():
        assert time.monotonic() < give_up_s
        loop.take_turn(noted)
    loop.take_turn(callback)


def test_a_turn_is_taken_at_once_while_the_loop_waits() -> None:
    loop = Loop()
    ran_in: list[int] = []
    loop.take_turn(lambda: ran_in.append(get_ident()))  # it does not run yet
    assert ran_in == [get_ident()]


def test_a_turn_of_another_thread_stops_a_loop_that_waits() -> None:
    loop = Loop()
    thread = Thread(target=loop.run)
    thread.start()
    turn_of_waiting(loop, loop.stop)
    thread.join(PATIENCE_S)
    assert not thread.is_alive()


def test_what_is_asked_for_in_a_turn_happens_in_time() -> None:
    loop, is_over = Loop(), Event()
    with running(loop):
        turn_of_waiting(loop, lambda: loop.at(time.perf_counter() + 1e-3, is_over.set))
        assert is_over.wait(PATIENCE_S)
        is_over.clear()
        turn_of_waiting(loop, lambda: loop.post(is_over.set))
        assert is_over.wait(PATIENCE_S)


def test_nobody_takes_a_turn_during_another() -> None:
    loop, has_begun, goes_on, is_over = Loop(), Event(), Event(), Event()
    order: list[str] = []

    def long() -> None:
        has_begun.set()
        assert goes_on.wait(PATIENCE_S)
        order.append("long")

    def short() -> None:
        order.append("short")
        is_over.set()

    with running(loop):
        loop.post(long)
        assert has_begun.wait(PATIENCE_S)
        loop.take_turn(short)
        assert order == []
        goes_on.set()
        assert is_over.wait(PATIENCE_S)
    assert order == ["long", "short"]


def test_an_error_in_a_turn_ends_the_loop() -> None:
    def fail() -> None:
        raise ZeroDivisionError

    loop = Loop()
    loop.take_turn(fail)
    with pytest.raises(ZeroDivisionError):
        loop.run()


def test_a_turn_that_follows_at_once_takes_no_wake_up_away() -> None:
    """Another thread takes a turn as soon as the first has ended, before that could wake the loop."""
    loop = Loop()

    class Handed:
        """The lock of turns, which another thread gets with its release."""

        lock, is_first = loop._turn, True

        def acquire(self, *, blocking: bool) -> bool:
            return self.lock.acquire(blocking=blocking)

        def release(self) -> None:
            self.lock.release()
            if self.is_first:
                self.is_first = False
                loop.take_turn(lambda: None)

    loop._turn = Handed()  # type: ignore[assignment]
    loop.take_turn(lambda: loop.at(time.perf_counter() + 60, lambda: None))
    assert loop._woken.recv(1) == b"\0"
