"""Makes the state of the page once for all browsers, and sends each of them what has changed.

While nobody looks, nothing is made. A browser that does not read keeps no messages here: it gets the state of then once
it reads again, and is disconnected where that takes too long.
"""

import asyncio
import logging
import secrets
from collections import Counter
from collections.abc import AsyncGenerator, Callable, Iterator
from contextlib import contextmanager, suppress
from time import thread_time, time

from controller.events import RecentEvents
from controller.web.page.gathering import Gatherer
from controller.web.page.journal import Journal
from controller.web.presence import Presence
from topologies.printable import printable

_LOG = logging.getLogger(__name__)

PERIOD_S = 0.2
_SHARE = 0.08
"""The most of a core that gathering may take: where it takes long, it is done less often."""
_LONGEST_PERIOD_S = 5.0
_RETRY_S = 2.0
_RETRY_MS = 1_500
"""When a browser that has lost the connection tries again."""
ALIVE_S = 5.0
"""How often a browser hears of the controller whatever changes, and its right to hear is checked again."""
MOST_CLIENTS = 64
MOST_OF_ONE = 16
"""Browsers that may follow under one identity or, where there are none, from one address."""
_EVENTS_SENT = 200
_MESSAGE_LIMIT = 1_000
_FIELD_LIMIT = 300


class Feed:
    """The state of the page, and its messages to browsers.

    Args:
        presence: The active controller.
        events: What has happened.
    """

    def __init__(self, presence: Presence, events: RecentEvents) -> None:
        self._presence = presence
        self._events = events
        self._journal = Journal()
        self._marker = secrets.token_hex(4)
        """Of this process: numbers of another one mean nothing here."""
        self._clients: Counter[str] = Counter()
        self._news = asyncio.Event()
        self._fresh = asyncio.Event()
        """Whether the journal is being kept up to date."""
        self._making: asyncio.Task[None] | None = None
        self._newest_event = 0

    async def close(self) -> None:
        """Make nothing any more."""
        if self._making is not None:
            self._making.cancel()
            with suppress(asyncio.CancelledError):
                await self._making

    @property
    def followers(self) -> int:
        """How many browsers follow."""
        return self._clients.total()

    def has_room(self, account: str) -> bool:
        """Whether another browser of an account may follow."""
        return self.followers < MOST_CLIENTS and self._clients[account] < MOST_OF_ONE

    async def messages(self, account: str, last_seen: str, check: Callable[[], object]) -> AsyncGenerator[bytes, None]:
        """Yield server-sent events for one browser, as soon as the one before has been taken.

        Args:
            account: Whose browser it is.
            last_seen: The id of the last message that it has; empty: none.
            check: Called from time to time; raises where the browser may not follow any longer.
        """
        with self._following(account):
            number, loop = self._number_of(last_seen), asyncio.get_running_loop()
            due_s = loop.time() + ALIVE_S
            yield f"retry: {_RETRY_MS}\n{_alive()}".encode()
            while True:
                await self._fresh.wait()
                news = self._news
                if number != self._journal.number:
                    message = self._journal.message(number)
                    number = self._journal.number
                    yield f"id: {self._marker}-{number}\nevent: state\ndata: {message}\n\n".encode()
                with suppress(TimeoutError):
                    async with asyncio.timeout_at(due_s):
                        await news.wait()
                if loop.time() >= due_s:
                    check()
                    yield _alive().encode()
                    due_s = loop.time() + ALIVE_S

    @contextmanager
    def _following(self, account: str) -> Iterator[None]:
        self._clients[account] += 1
        if self._making is None or self._making.done():
            self._making = asyncio.create_task(self._make())
        try:
            yield
        finally:
            self._clients[account] -= 1
            if not self._clients[account]:
                del self._clients[account]

    def _number_of(self, last_seen: str) -> int | None:
        marker, _, number = last_seen.partition("-")
        return int(number) if marker == self._marker and number.isdecimal() and len(number) < 16 else None

    async def _make(self) -> None:
        """Keep the journal up to date while browsers follow."""
        gatherer: Gatherer | None = None
        loop = asyncio.get_running_loop()
        try:
            while self._clients:
                start_s, worked_s = loop.time(), thread_time()
                try:
                    gatherer = await self._gather(gatherer)
                except Exception:
                    _LOG.exception("the page cannot be brought up to date")
                    await asyncio.sleep(_RETRY_S)
                    continue
                if self._journal.commit():
                    news, self._news = self._news, asyncio.Event()
                    news.set()
                self._fresh.set()
                others_s = 0.0 if gatherer is None else gatherer.others_s
                rest_s = (thread_time() - worked_s - others_s) * (1 / _SHARE - 1)
                await asyncio.sleep(max(start_s + PERIOD_S - loop.time(), min(rest_s, _LONGEST_PERIOD_S)))
        finally:
            self._fresh.clear()
            if gatherer is not None:
                gatherer.close()

    async def _gather(self, gatherer: Gatherer | None) -> Gatherer | None:
        """Gather from the active controller, or say that there is none; returns what to gather with next time."""
        context = await self._presence.settled()
        if gatherer is not None and not gatherer.is_for(context):
            gatherer.close()
            gatherer = None
        if context is None:
            for section in ("map", "jobs", "links", "loads", "switches", "drains", "plans"):
                self._journal.replace(section, {})
            leader = printable(self._presence.who_leads(), _FIELD_LIMIT)
            self._journal.replace("controller", {"now": {"standby": leader}})
        else:
            gatherer = gatherer or Gatherer(context)
            await gatherer.gather(self._journal)
        self._add_events()
        return gatherer

    def _add_events(self) -> None:
        new = self._events.since(self._newest_event)[-_EVENTS_SENT:]
        for event in new:
            self._newest_event = event.number
            fields = {
                key: printable(value, _FIELD_LIMIT) if isinstance(value, str) else value
                for key, value in event.fields.items()
            }
            self._journal.set(
                "events",
                str(event.number),
                {
                    "time_s": round(event.time_s, 3),
                    "severity": event.severity,
                    "kind": event.kind,
                    "message": printable(event.message, _MESSAGE_LIMIT),
                    "fields": fields,
                },
            )
        if new:
            self._journal.keep_last("events", _EVENTS_SENT)


def _alive() -> str:
    """A message that has the time, to which browsers set their clocks."""
    return f"event: alive\ndata: {time():.3f}\n\n"
