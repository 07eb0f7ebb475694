"""Waiting for the lease on a fabric, leading while it is held, and stepping back before it can be another's."""

import asyncio
import logging
from collections.abc import Callable, Coroutine
from contextlib import suppress
from typing import Any, Protocol

from controller.errors import StoreError
from controller.leadership.lease import LOOK_SHARE, Hold, LeaseRecord, Watch

_LOG = logging.getLogger(__name__)

_FAREWELL_S = 1.0
_SILENT_SHARE = 0.5
"""Of a lease: whoever leads is heard of every quarter."""


class LeaseTable(Protocol):
    """Where the lease stands; every method is one transaction, and raises StoreError where its outcome is not known."""

    async def read(self) -> LeaseRecord: ...

    async def take(self, seen: LeaseRecord, record: LeaseRecord) -> bool:
        """Put ``record`` in the place of the one ``seen``; False where that is no longer there."""

    async def renew(self, term: int) -> bool:
        """Count a renewal; False where the lease is of another term."""

    async def give_back(self, term: int) -> None:
        """Let others take the lease at once, where it is still of this term."""


class Lease:
    """The lease as whoever leads by it sees it, by the time of the event loop."""

    def __init__(self, hold: Hold) -> None:
        self.hold = hold
        self._confirmed = asyncio.Event()
        self._doubted = asyncio.Event()

    @property
    def term(self) -> int:
        """Which take-over of the lease this was."""
        return self.hold.term

    async def granted(self) -> None:
        """Return as soon as something may be written, which is to be sent then and there."""
        while not self.hold.may_write(_now_s()):
            self._confirmed.clear()
            await self._confirmed.wait()

    def doubt(self) -> None:
        """A switch obeys another controller: nothing is written until the database has confirmed the lease."""
        self.hold = self.hold.doubt(_now_s())
        self._doubted.set()

    def confirm(self, asked_s: float) -> None:
        """A renewal that was asked for at ``asked_s`` has succeeded."""
        self.hold = self.hold.confirm(asked_s)
        self._confirmed.set()

    async def renewal_due(self) -> None:
        """Return when the lease is to be renewed."""
        self._doubted.clear()
        with suppress(TimeoutError):
            async with asyncio.timeout_at(self.hold.renewal_due_s):
                await self._doubted.wait()


class Leadership:
    """A controller's part in who leads, under a name that tells people which one it is.

    ``known`` is what it knows of who leads, in words; empty where it leads itself, or has not looked yet.
    """

    def __init__(self, table: LeaseTable, name: str, lease_s: float) -> None:
        self.known = ""
        self._table = table
        self._name = name
        self._lease_s = lease_s
        self._former_term: int | None = None

    async def run(self, lead: Callable[[Lease], Coroutine[Any, Any, None]]) -> None:
        """Have ``lead`` run whenever the lease is held, cancelled when it may no longer be, until it ends by itself.

        Raises what it raises, but for StoreError: then it is another's turn. Where all this ends though the lease is
        held, that is given back.
        """
        is_over = False
        while not is_over:
            lease = Lease(await self._campaign())
            try:
                is_over = await self._lead(lease, lead)
            except StoreError as error:
                _LOG.error("stepping back from term %d: %s", lease.term, error)
                self.known = str(error)
                await asyncio.sleep(self._lease_s)

    async def _campaign(self) -> Hold:
        """Wait until the lease is this controller's."""
        watch: Watch | None = None
        problem = ""
        while True:
            try:
                record = await self._table.read()
                watch = Watch(record, _now_s()) if watch is None else watch.look(record, _now_s())
                is_own = record.term == self._former_term
                self.known = _in_words(watch, is_own=is_own)
                # What this controller held itself it has let go of.
                if watch.may_take or is_own:
                    hold = Hold(record.term + 1, self._lease_s, _now_s())
                    if await self._take(record, LeaseRecord(self._name, hold.term, 0, self._lease_s)):
                        self.known, self._former_term = "", hold.term
                        if hold.may_write(_now_s()):
                            return hold
                problem = ""
            except StoreError as error:
                if not problem:
                    _LOG.warning("who leads is not known: %s", error)
                problem, self.known = str(error), f"who leads is not known: {error}"
            await asyncio.sleep(LOOK_SHARE * self._lease_s)

    async def _take(self, seen: LeaseRecord, record: LeaseRecord) -> bool:
        taking = asyncio.ensure_future(self._table.take(seen, record))
        try:
            return await asyncio.shield(taking)
        except asyncio.CancelledError:
            # Only what it holds then: another may have taken the lease in a term of the same number.
            with suppress(StoreError, TimeoutError):
                if await asyncio.wait_for(taking, _FAREWELL_S):
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
        """Renew a lease; returns when it is lost, or so late that it may be."""
        while not lease.hold.is_over(_now_s()):
            await lease.renewal_due()
            asked_s = _now_s()
            try:
                async with asyncio.timeout_at(lease.hold.end_s):
                    is_held = await self._table.renew(lease.term)
            except TimeoutError:
                break
            except StoreError as error:
                _LOG.warning("the lease is not renewed: %s", error)
                await asyncio.sleep(LOOK_SHARE * self._lease_s)
                continue
            if not is_held:
                _LOG.warning("stepping back from term %d: another controller leads", lease.term)
                return
            lease.confirm(asked_s)
        _LOG.warning("stepping back from term %d: the lease was not renewed in time", lease.term)

    async def _give_back(self, term: int) -> None:
        with suppress(StoreError, TimeoutError):
            async with asyncio.timeout(_FAREWELL_S):
                await self._table.give_back(term)


def _in_words(watch: Watch, *, is_own: bool) -> str:
    if is_own or not watch.record.lease_s:
        return "nobody does"
    if watch.unchanged_s <= _SILENT_SHARE * watch.record.lease_s:
        return f"{watch.record.holder} does"
    return f"{watch.record.holder} did, and has not been heard of for {watch.unchanged_s:.1f} s"


def _now_s() -> float:
    return asyncio.get_running_loop().time()
