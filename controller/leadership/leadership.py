"""Leader election: wait for the lease, lead while it is held, and step down before another can hold it."""

import asyncio
import logging
from collections.abc import Callable, Coroutine
from contextlib import suppress
from typing import Any, Protocol

from controller.errors import StoreError
from controller.events import EventKind, log_event
from controller.leadership.lease import OBSERVE_SHARE, HeldLease, LeaseObserver, LeaseRecord
from controller.metrics import TERMS

_LOG = logging.getLogger(__name__)

_GIVE_BACK_S = 1.0
_SILENT_SHARE = 0.5
"""The share of a lease after which its holder counts as silent; it renews the lease every quarter."""


class LeaseTable(Protocol):
    """The stored lease. Every method is one transaction, and raises StoreError where its outcome is not known."""

    async def read(self) -> LeaseRecord:
        """Read the lease."""
        ...

    async def take(self, seen: LeaseRecord, record: LeaseRecord) -> bool:
        """Replace the record ``seen`` by another; returns False where it has changed meanwhile."""
        ...

    async def renew(self, term: int) -> bool:
        """Count a renewal; returns False where the lease is of another term."""
        ...

    async def give_back(self, term: int) -> None:
        """Let others take the lease at once, if it is still of this term."""
        ...


class Lease:
    """The lease of the controller that leads, by the time of the event loop."""

    def __init__(self, held: HeldLease) -> None:
        self.held = held
        self._confirmed = asyncio.Event()
        self._doubted = asyncio.Event()

    @property
    def term(self) -> int:
        """The number of this take-over of the lease."""
        return self.held.term

    async def granted(self) -> None:
        """Wait until the controller may write; what it writes must be sent at once."""
        while not self.held.may_write(_now_s()):
            self._confirmed.clear()
            await self._confirmed.wait()

    def doubt(self) -> None:
        """Write nothing until the database has confirmed the lease: a switch obeys another controller."""
        self.held = self.held.doubt(_now_s())
        self._doubted.set()

    def confirm(self, asked_s: float) -> None:
        """Take note of a renewal that was asked for at ``asked_s``."""
        self.held = self.held.confirm(asked_s)
        self._confirmed.set()

    async def renewal_due(self) -> None:
        """Wait until the lease is to be renewed."""
        self._doubted.clear()
        with suppress(TimeoutError):
            async with asyncio.timeout_at(self.held.renewal_due_s):
                await self._doubted.wait()


class Leadership:
    """A controller's part in the election.

    ``known`` is a sentence about who leads; it is empty where this controller leads, or has not read the lease yet.

    Example::

        leadership = Leadership(table, name="controller-1", lease_s=5.0)
        await leadership.run(lead)  # calls lead(lease) in every term, and cancels it when the term ends
    """

    def __init__(self, table: LeaseTable, name: str, lease_s: float) -> None:
        self.known = ""
        self._table = table
        self._name = name
        self._lease_s = lease_s
        self._former_term: int | None = None

    async def run(self, lead: Callable[[Lease], Coroutine[Any, Any, None]]) -> None:
        """Run ``lead`` in every term, and cancel it before the term ends; return once it has returned by itself.

        An error of ``lead`` is raised, except StoreError, after which another controller may lead. A lease that is held
        in the end is given back.
        """
        is_over = False
        while not is_over:
            lease = Lease(await self._campaign())
            TERMS.inc()
            _tell(logging.INFO, lease.term, "won", f"leading in term {lease.term}")
            try:
                is_over = await self._lead(lease, lead)
            except StoreError as error:
                _tell(logging.ERROR, lease.term, "stepped down", f"stepping down from term {lease.term}: {error}")
                self.known = "this controller has stepped down, and its log says why"
                await asyncio.sleep(self._lease_s)

    async def _campaign(self) -> HeldLease:
        """Wait until this controller holds the lease."""
        observer: LeaseObserver | None = None
        problem = ""
        while True:
            try:
                record = await self._table.read()
                observer = LeaseObserver(record, _now_s()) if observer is None else observer.observe(record, _now_s())
                is_own = record.term == self._former_term
                self.known = _describe(observer, is_own=is_own)
                # A lease that was this controller's own needs no waiting: it has stopped writing.
                if observer.may_take or is_own:
                    held = HeldLease(record.term + 1, self._lease_s, _now_s())
                    if await self._take(record, LeaseRecord(self._name, held.term, 0, self._lease_s)):
                        self.known, self._former_term = "", held.term
                        if held.may_write(_now_s()):
                            return held
                problem = ""
            except StoreError as error:
                if not problem:
                    words = "who leads is not known: %s"
                    log_event(_LOG, logging.WARNING, EventKind.LEADERSHIP, words, error, change="not known")
                problem, self.known = str(error), "who leads is not known, since the database fails"
            await asyncio.sleep(OBSERVE_SHARE * self._lease_s)

    async def _take(self, seen: LeaseRecord, record: LeaseRecord) -> bool:
        taking = asyncio.ensure_future(self._table.take(seen, record))
        try:
            return await asyncio.shield(taking)
        except asyncio.CancelledError:
            # Only a lease that was taken: another controller may hold one of the same term.
            with suppress(StoreError, TimeoutError):
                if await asyncio.wait_for(taking, _GIVE_BACK_S):
                    await self._give_back(record.term)
            raise

    async def _lead(self, lease: Lease, lead: Callable[[Lease], Coroutine[Any, Any, None]]) -> bool:
        """Lead as long as the lease is held; returns whether it still is."""
        leading, keeping = asyncio.create_task(lead(lease)), asyncio.create_task(self._keep(lease))
        try:
            await asyncio.wait((leading, keeping), return_when=asyncio.FIRST_COMPLETED)
        finally:
            is_held = not keeping.done()
            leading.cancel()
            keeping.cancel()
            outcomes = await asyncio.gather(leading, keeping, return_exceptions=True)
            if is_held:
                await self._give_back(lease.term)
        for outcome in outcomes:
            if isinstance(outcome, Exception):
                raise outcome
        return is_held

    async def _keep(self, lease: Lease) -> None:
        """Renew the lease; returns when it is lost, or may be because a renewal is late."""
        while not lease.held.is_over(_now_s()):
            await lease.renewal_due()
            asked_s = _now_s()
            try:
                async with asyncio.timeout_at(lease.held.end_s):
                    is_held = await self._table.renew(lease.term)
            except TimeoutError:
                break
            except StoreError as error:
                _LOG.warning("the lease is not renewed: %s", error)
                await asyncio.sleep(OBSERVE_SHARE * self._lease_s)
                continue
            if not is_held:
                words = f"stepping down from term {lease.term}: another controller leads"
                _tell(logging.WARNING, lease.term, "lost", words)
                return
            lease.confirm(asked_s)
        words = f"stepping down from term {lease.term}: the lease was not renewed in time"
        _tell(logging.WARNING, lease.term, "lost", words)

    async def _give_back(self, term: int) -> None:
        with suppress(StoreError, TimeoutError):
            async with asyncio.timeout(_GIVE_BACK_S):
                await self._table.give_back(term)


def _tell(level: int, term: int, change: str, words: str) -> None:
    log_event(_LOG, level, EventKind.LEADERSHIP, "%s", words, term=term, change=change)


def _describe(observer: LeaseObserver, *, is_own: bool) -> str:
    if is_own or not observer.record.lease_s:
        return "nobody does"
    if observer.unchanged_s <= _SILENT_SHARE * observer.record.lease_s:
        return f"{observer.record.holder} does"
    return f"{observer.record.holder} did, and has not been heard of for {observer.unchanged_s:.1f} s"


def _now_s() -> float:
    return asyncio.get_running_loop().time()
