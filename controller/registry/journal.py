"""Group commit: changes of the registry that wait together become durable together, off the event loop."""

import asyncio
from collections.abc import Awaitable, Callable, Sequence

from controller.errors import UnknownOutcomeError
from controller.registry.background import Background
from controller.registry.registration import Change, NotStoredError


class Journal:
    """Writes changes in the order in which they are added; all that have come during a write go with the next.

    ``write`` writes all it is given, or raises: StoreError where it has written nothing, UnknownOutcomeError where it
    may have. It is told to who follows what has been stored, and what is lost: with what could not be stored all that
    has been added since, which may rest on it; and which of that may be stored all the same.
    """

    def __init__(self, write: Callable[[Sequence[Change]], Awaitable[None]]) -> None:
        self._write = write
        self._on_stored: Callable[[Sequence[Change]], None] = _ignore
        self._on_lost: Callable[[Sequence[Change], Sequence[Change]], None] = _ignore
        self._waiting: list[Change] = []
        self._next: asyncio.Future[None] | None = None
        self._current: asyncio.Future[None] | None = None
        self._writing = Background(self._write_all)

    def follow(
        self,
        on_stored: Callable[[Sequence[Change]], None],
        on_lost: Callable[[Sequence[Change], Sequence[Change]], None],
    ) -> None:
        """Tell what becomes of the changes, in order, and of everyone once."""
        self._on_stored, self._on_lost = on_stored, on_lost

    def add(self, change: Change) -> None:
        """A change that is to be stored; it is written as soon as somebody waits."""
        self._waiting.append(change)

    def stored(self) -> Awaitable[None]:
        """Wait until all that was added before this call is stored. Raises NotStoredError where it is lost instead.

        What is lost before anybody begins to wait is lost to whoever made the call. Not a coroutine: the call must take
        hold of the outcome at once, or a failed transaction could be acknowledged.
        """
        if self._waiting and self._next is None:
            self._next = asyncio.get_running_loop().create_future()
        outcome = self._next or self._current
        if outcome is None:
            return at_once()
        self._writing.begin()
        return asyncio.shield(outcome)

    async def _write_all(self) -> None:
        while self._next is not None:
            changes, self._waiting = self._waiting, []
            self._current, self._next = self._next, None
            try:
                await self._write(changes)
            except Exception as error:
                doubtful = changes if isinstance(error, UnknownOutcomeError) else []
                self._lose(changes, doubtful, NotStoredError(f"not stored: {error}"))
            else:
                self._current.set_result(None)
                self._on_stored(changes)
            self._current = None

    def _lose(self, changes: list[Change], doubtful: list[Change], error: NotStoredError) -> None:
        lost, self._waiting = changes + self._waiting, []
        for outcome in (self._current, self._next):
            if outcome is not None:
                outcome.set_exception(error)
                outcome.exception()  # whoever waited may have gone
        self._next = None
        self._on_lost(lost, doubtful)


async def at_once() -> None:
    """There is nothing to wait for."""


def _ignore(*_: Sequence[Change]) -> None:
    pass
