"""A small event loop: sockets, timers of microseconds, and calls from other threads.

asyncio takes several times as long for a hop, and its timers are a millisecond coarse; between two computations of
some ten microseconds that is what counts.
"""

import heapq
import os
import select
import socket
import time
from collections import deque
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from itertools import count
from threading import Lock

_SOON_S = 300e-6
_SHARED_S = 30e-6
"""Where others run meanwhile for so long, they need the core."""


class Loop:
    """Runs callbacks one after the other until ``stop``. Others may call ``post`` and ``take_turn`` alone.

    Callbacks run in the loop's own thread, or in one that takes a turn while that waits: then nobody has to be woken.
    ``busy_threads`` are others of this process that compute; ``turns`` counts the turns that have begun.
    """

    def __init__(self) -> None:
        # select() takes microseconds, epoll() rounds to milliseconds; a host has a few dozen sockets.
        self._readable: dict[int, Callable[[], None]] = {}
        self._writable: dict[int, Callable[[], None]] = {}
        self._timers: list[tuple[float, int, Callable[[], None]]] = []
        self._numbers = count()
        self._posted: deque[Callable[[], None]] = deque()
        self._wake, self._woken = socket.socketpair()
        for each in (self._wake, self._woken):
            each.setblocking(False)
        self._readable[self._woken.fileno()] = self._drain
        self._running = True
        self.turns = 0
        self._turn = Lock()
        self._is_outdated = False
        self.busy_threads = 0
        self._is_answered_soon = False

    def watch(self, sock: socket.socket, readable: Callable[[], None], writable: Callable[[], None] | None) -> None:
        """Call ``readable``, and where given ``writable``, whenever a socket is so; replaces an earlier watch."""
        self._is_outdated = True
        self._readable[sock.fileno()] = readable
        if writable is not None:
            self._writable[sock.fileno()] = writable
        else:
            self._writable.pop(sock.fileno(), None)

    def forget(self, sock: socket.socket) -> None:
        """Watch a socket no more; call it before the socket is closed."""
        self._readable.pop(sock.fileno(), None)
        self._writable.pop(sock.fileno(), None)

    def at(self, time_s: float, callback: Callable[[], None]) -> None:
        """Call back at a time of ``time.perf_counter()``."""
        self._is_outdated = True
        heapq.heappush(self._timers, (time_s, next(self._numbers), callback))

    def post(self, callback: Callable[[], None]) -> None:
        """Call back soon. Any thread may call this."""
        self._posted.append(callback)
        self._wake_up()

    def take_turn(self, callback: Callable[[], None]) -> None:
        """Call back at once, in this thread, if the loop waits, and soon otherwise. Any other thread may call this."""
        if not self._turn.acquire(blocking=False):
            self.post(callback)
            return
        try:
            self._is_outdated = False
            self.turns += 1
            callback()
        except BaseException as error:  # it ends the loop, as it would there
            self.post(partial(_raise, error))
        finally:
            is_outdated = self._is_outdated  # before another thread takes a turn
            self._turn.release()
        if is_outdated or self._posted:  # the loop would wait for too long
            self._wake_up()

    def stop(self) -> None:
        """Return from ``run`` after the present turn."""
        self._running = False
        self._is_outdated = True

    def run(self) -> None:
        """Run until ``stop``."""
        while self._running:
            ready = self._ready()
            with self._turn:
                self._call_back(*ready)

    def _call_back(self, readable: list[int], writable: list[int]) -> None:
        self.turns += 1
        for number in readable:
            if number in self._readable:  # or a callback has closed it
                self._readable[number]()
        for number in writable:
            if number in self._writable:
                self._writable[number]()
        while self._timers and self._timers[0][0] <= time.perf_counter():
            heapq.heappop(self._timers)[2]()
        while self._posted:
            self._posted.popleft()()

    def _ready(self) -> tuple[list[int], list[int]]:
        """Wait for sockets or a timer; return the sockets that are readable, and writable.

        Waking up takes longer than most hops. So the loop looks again and again before it sleeps, if what it waited for
        last time came soon, and nobody else needs the core.
        """
        began_s = now_s = time.perf_counter()
        is_shared = self.busy_threads > 0
        while self._is_answered_soon and not is_shared and now_s - began_s < _SOON_S:
            ready = self._select(0.0)
            if any(ready) or self._timeout_s() == 0.0:
                return ready
            looked_s = time.perf_counter()
            os.sched_yield()
            now_s = time.perf_counter()
            is_shared = now_s - looked_s > _SHARED_S
        ready = self._select(self._timeout_s())
        self._is_answered_soon = any(ready) and time.perf_counter() - began_s < _SOON_S
        return ready

    def _select(self, timeout_s: float | None) -> tuple[list[int], list[int]]:
        readable, writable, _ = select.select(self._readable, self._writable, (), timeout_s)
        return readable, writable

    def _timeout_s(self) -> float | None:
        if self._posted:
            return 0.0
        return max(0.0, self._timers[0][0] - time.perf_counter()) if self._timers else None

    def _wake_up(self) -> None:
        with suppress(BlockingIOError):  # full: it will wake up anyway
            self._wake.send(b"\0")

    def _drain(self) -> None:
        self._woken.recv(4096)


def _raise(error: BaseException) -> None:
    raise error
