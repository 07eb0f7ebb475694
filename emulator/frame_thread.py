"""The thread in which the engine passes frames of real interfaces, and its pauses, in which Python may act."""

import asyncio
import os
import threading
import time
from collections.abc import Callable
from contextlib import ExitStack, suppress

import numpy as np
from numpy.typing import NDArray

from emulator.engine import state as s
from emulator.engine import wires as w
from emulator.memory import Arena
from emulator.parts import Parts

_BREATH_S = 0.0005
"""So long frames pass at least between two pauses."""


class FrameThread:
    """Runs the engine while frames pass.

    Two bells, file descriptors of events, wake either side: one the engine, the other Python. ``has_news`` is set when
    the engine has packets for control planes, or has failed.

    Args:
        parts: The engine's arrays, attached to the files of both bells.
        arena: The memory of the switches.
        bell: Wakes the engine.
        answer_bell: Wakes Python, which calls ``hear``.
        serve: The engine's function that passes frames until it is told to stop.
    """

    def __init__(
        self, parts: Parts, arena: Arena, bell: int, answer_bell: int, serve: Callable[[s.State, object], object]
    ) -> None:
        self._parts = parts
        self._arena = arena
        self._bell, self._answer_bell = bell, answer_bell
        self._serve = serve
        self._thread: threading.Thread | None = None
        self._served, self._served_state = arena.words, parts.first
        self._pauses = 0
        self._resumed_s, self._rounds = time.monotonic(), 0
        self._has_ended = False
        self._failure: BaseException | None = None
        self._has_paused = asyncio.Event()
        self.has_news = asyncio.Event()

    @property
    def is_running(self) -> bool:
        """Whether frames pass, or would but for a pause."""
        return self._thread is not None

    def compile(self) -> None:
        """Compile the engine's function, which does nothing yet."""
        self._words[w.REQUEST] = w.STOP
        self._serve(self._parts.first, self._arena.words)

    async def start(self) -> None:
        """Start the thread, in a pause."""
        self._words[w.START_NS] = time.monotonic_ns() - self._parts.now_ps // 1000
        self._words[w.REQUEST] = self._pauses = 1
        self._thread = threading.Thread(target=self._pass, name="frames", daemon=True)
        self._thread.start()
        await self._has_paused.wait()

    async def pause(self) -> None:
        """Have the engine wait, once frames have passed since the last pause.

        Raises:
            RuntimeError: The engine has failed.
        """
        while self._thread is not None and not self._has_breathed():
            self.require_alive()
            await asyncio.sleep(_BREATH_S)
        if self._thread is None:
            return
        self.require_alive()
        self._pauses += 1
        self._has_paused.clear()
        self._ask(self._pauses)
        await self._has_paused.wait()
        self.require_alive()

    def resume(self) -> None:
        """Have the engine go on, with what has changed."""
        self._words[w.HAS_TOLD] = 0
        self._resumed_s, self._rounds = time.monotonic(), int(self._words[w.ROUNDS])
        # A larger arena lies elsewhere, as do links and programs that are new: the engine begins again with them.
        is_same = self._served is self._arena.words and self._served_state is self._parts.first
        self._ask(w.GO if is_same else w.STOP)

    def end(self) -> None:
        """Stop the engine and wait for its thread."""
        self._has_ended = True
        self._ask(w.STOP)
        if self._thread is not None:
            self._thread.join()
        self._thread = None
        self._has_paused.set()  # nobody waits for an engine that is gone

    def hear(self) -> None:
        """React to the engine's bell: it has paused, or has packets for control planes."""
        with suppress(BlockingIOError):
            os.eventfd_read(self._answer_bell)
        if self._words[w.PAUSED] == self._pauses or self._failure is not None:
            self._has_paused.set()
        if self._words[w.HAS_TOLD] or self._failure is not None:
            self.has_news.set()

    def require_alive(self) -> None:
        """Raise RuntimeError if the engine has failed."""
        if self._failure is not None:
            raise RuntimeError(f"the emulator's engine has failed: {self._failure}") from self._failure

    @property
    def time_ps(self) -> int:
        """The machine's time since the start: the engine's stands still while there are no frames."""
        return max(self._parts.now_ps, (time.monotonic_ns() - int(self._words[w.START_NS])) * 1000)

    @property
    def _words(self) -> NDArray[np.int64]:
        """The words by which both sides speak to each other."""
        return self._parts.first.wires

    def _pass(self) -> None:
        """Run the engine, in its thread."""
        try:
            while True:
                if self._words[w.REQUEST] == w.STOP:
                    self._words[w.REQUEST] = w.GO
                if self._has_ended:
                    return
                self._served, self._served_state = self._arena.words, self._parts.first
                self._serve(self._served_state, self._served)
        except BaseException as error:
            self._failure = error
            os.eventfd_write(self._answer_bell, 1)

    def _has_breathed(self) -> bool:
        """Return whether the engine has had its time since it was to go on, however late it came to it."""
        return time.monotonic() >= self._resumed_s + _BREATH_S and self._words[w.ROUNDS] != self._rounds

    def _ask(self, request: int) -> None:
        self._words[w.REQUEST] = request
        os.eventfd_write(self._bell, 1)


def new_bell(opened: ExitStack) -> int:
    """Return the file descriptor of a new event, which is closed with ``opened``."""
    bell = os.eventfd(0, os.EFD_NONBLOCK | os.EFD_CLOEXEC)
    opened.callback(os.close, bell)
    return bell
