"""The active controller of a process, as far as HTTP asks for it: it comes and goes with terms and reloads."""

import asyncio
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field

from controller.api.context import ServiceContext

_GOING_OVER_LIMIT_S = 5.0
"""How long whoever asks waits while a controller goes over to another fabric."""


@dataclass(slots=True)
class Presence:
    """The parts of the active controller; ``context`` is None before it is ready, and while this one stands by.

    ``who_leads`` returns a sentence about the leader for that time; empty: nothing is known.
    """

    context: ServiceContext | None = None
    who_leads: Callable[[], str] = str
    _leaving: ServiceContext | None = None
    """The parts that others replace now, as the fabric changes."""
    _is_settled: asyncio.Event = field(default_factory=asyncio.Event)

    def __post_init__(self) -> None:
        self._is_settled.set()

    @property
    def is_ready(self) -> bool:
        """Whether registrations would be taken: this controller leads, and its database, if it has one, commits.

        While it goes over to another fabric they are taken a moment later.
        """
        context = self.context or self._leaving
        return context is not None and (context.store is None or not context.store.database.health.problem)

    async def settled(self) -> ServiceContext | None:
        """Return ``context``, once the controller has gone over to another fabric if it does so now."""
        with suppress(TimeoutError):
            async with asyncio.timeout(_GOING_OVER_LIMIT_S):
                await self._is_settled.wait()
        return self.context

    @contextmanager
    def of(self, context: ServiceContext) -> Iterator[None]:
        """Have an active controller while the context lasts."""
        self.context = context
        self.stay()
        try:
            yield
        finally:
            if self.context is context:
                self.context = None

    def go_over(self) -> None:
        """Expect the parts of the active controller to be replaced soon; to be called before they go."""
        self._leaving = self.context
        self._is_settled.clear()

    def stay(self) -> None:
        """Expect that no longer."""
        self._leaving = None
        self._is_settled.set()
