"""Long answers as pages, a few of which are made at once, beside the event loop or in slices of it."""

import asyncio
from collections.abc import AsyncIterator, Iterable, Iterator
from contextlib import asynccontextmanager
from typing import Any

from google.protobuf.message import Message

from controller.api.errors import BusyError
from controller.api.operations.methods import Listing, StateT

PAGE_STATES = 500
PAGE_BYTES = 1 << 19
"""A page is full with so many states, or as soon as it has so many bytes."""
_AT_ONCE = 4
_PATIENCE_S = 10.0
_SLICE_STATES = 50


class Turns:
    """The right to make a page of an answer, which few calls have at once."""

    def __init__(self, at_once: int = _AT_ONCE, patience_s: float = _PATIENCE_S) -> None:
        self._free = asyncio.Semaphore(at_once)
        self._patience_s = patience_s

    @asynccontextmanager
    async def turn(self) -> AsyncIterator[None]:
        """Wait for a turn, and have it while the context lasts. Raises BusyError where that takes too long."""
        try:
            async with asyncio.timeout(self._patience_s):
                await self._free.acquire()
        except TimeoutError:
            raise BusyError(f"others have asked for so much that this call has waited {self._patience_s:g} s") from None
        try:
            yield
        finally:
            self._free.release()


async def pages(
    listing: Listing[StateT], states: Iterable[StateT], turns: Turns, *, is_pure: bool
) -> AsyncIterator[Any]:
    """Yield the pages of a list.

    Args:
        listing: Its method.
        states: The states, each made when it is asked for.
        turns: One is taken for every page.
        is_pure: The states follow from objects that never change, so that a thread may make them. Otherwise they are
            made here, and others may use the event loop after a few.
    """
    iterator = iter(states)
    while True:
        async with turns.turn():
            page = listing.method.response()
            if is_pure:
                is_last = await asyncio.to_thread(_fill, page, iterator, PAGE_STATES)
            else:
                is_last = await _fill_in_slices(page, iterator)
        if len(page.states):
            yield page
        if is_last:
            return


async def _fill_in_slices(page: Any, states: Iterator[Message]) -> bool:
    for _ in range(PAGE_STATES // _SLICE_STATES):
        if _fill(page, states, _SLICE_STATES):
            return True
        if page.ByteSize() >= PAGE_BYTES:
            break
        await asyncio.sleep(0)
    return False


def _fill(page: Any, states: Iterator[Message], most: int) -> bool:
    """Add states to a page; returns whether there are no more."""
    size_bytes = 0
    for _ in range(most):
        state = next(states, None)
        if state is None:
            return True
        page.states.append(state)
        size_bytes += state.ByteSize()
        if size_bytes >= PAGE_BYTES:
            break
    return False
