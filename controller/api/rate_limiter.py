"""A rate limit for every account, an identity or a connection, so that none can starve the others."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

from controller.errors import DaemonError

UNITS_PER_S = 1_000.0
"""Of an account, unless it is given another rate."""
BURST_UNITS = 10_000
BYTES_PER_UNIT = 4_096
"""A call costs one unit, and one more for this many bytes: both take about as long to handle."""

MAX_DELAY_S = 5.0
MAX_HELD_BYTES = 16 << 20
MOST_READ_AT_ONCE = 16
"""Requests of an account that come at the same time: each may be as large as a message."""
PENALTY_S = 2.0
MAX_STREAMS_PER_CONNECTION = 1024
"""Concurrent calls of a connection, which gRPC limits. With the penalty, this bounds the rate of refusals."""


class RateLimitError(DaemonError):
    """An account asks for more than its share; the message says of what."""


@dataclass(slots=True)
class _Account:
    """The units that an account has left, negative where it owes some; ``held_bytes`` are those of its calls.

    ``units_per_s`` is its own rate; None: the usual one. ``reading`` is taken while a request of one of its ``readers``
    comes.
    """

    units: float
    counted_s: float
    held_bytes: int = 0
    units_per_s: float | None = None
    readers: int = 0
    reading: asyncio.Semaphore = field(default_factory=lambda: asyncio.Semaphore(MOST_READ_AT_ONCE))


class RateLimiter:
    """Admits the calls of every account: a burst at once, then a steady rate.

    It counts wall-clock time whatever clock the controller uses, since it protects the processor.

    Example::

        async with limiter.admitted(context.peer(), len(request)):
            return answer(request)
    """

    def __init__(self) -> None:
        self._accounts: dict[str, _Account] = {}

    @asynccontextmanager
    async def admitted(self, name: str, size_bytes: int) -> AsyncIterator[None]:
        """Wait until an account may make a call. Raises RateLimitError, after a penalty, if that takes too long."""
        account = self._account(name)
        if account.held_bytes + size_bytes > MAX_HELD_BYTES:
            await asyncio.sleep(PENALTY_S)
            raise RateLimitError(f"this caller has more than {MAX_HELD_BYTES:,} bytes of requests waiting")
        account.held_bytes += size_bytes
        try:
            await self._pay(account, 1 + size_bytes / BYTES_PER_UNIT)
            yield
        finally:
            account.held_bytes -= size_bytes

    @asynccontextmanager
    async def reading(self, name: str) -> AsyncIterator[None]:
        """Wait until an account may have one more request come, and have it come while the context lasts."""
        account = self._account(name)
        account.readers += 1
        try:
            async with account.reading:
                yield
        finally:
            account.readers -= 1

    async def charge(self, name: str, size_bytes: int) -> None:
        """Wait until an account may receive another answer of this size. Raises RateLimitError as ``admitted``."""
        await self.spend(name, size_bytes / BYTES_PER_UNIT)

    async def spend(self, name: str, units: float) -> None:
        """Wait until an account may spend these units. Raises RateLimitError as ``admitted``."""
        await self._pay(self._account(name), units)

    def set_rate(self, name: str, units_per_s: float) -> None:
        """Give an account a rate of its own."""
        self._account(name).units_per_s = units_per_s

    async def _pay(self, account: _Account, units: float) -> None:
        rate = _rate_of(account)
        delay_s = (units - account.units) / rate
        if delay_s > MAX_DELAY_S:
            await asyncio.sleep(PENALTY_S)
            raise RateLimitError(f"this caller calls more often than {rate:g} times a second, or sends as much")
        account.units -= units
        if delay_s > 0:
            await asyncio.sleep(delay_s)

    def _account(self, name: str) -> _Account:
        now_s = asyncio.get_running_loop().time()
        if name not in self._accounts:
            self._forget_idle(now_s)
            self._accounts[name] = _Account(BURST_UNITS, now_s)
        account = self._accounts[name]
        account.units = _units_at(account, now_s)
        account.counted_s = now_s
        return account

    def _forget_idle(self, now_s: float) -> None:
        """Drop the accounts that are full again by now: a new one is equal."""
        self._accounts = {
            name: account
            for name, account in self._accounts.items()
            if account.held_bytes or account.readers or _units_at(account, now_s) < BURST_UNITS
        }


def _rate_of(account: _Account) -> float:
    return UNITS_PER_S if account.units_per_s is None else account.units_per_s


def _units_at(account: _Account, now_s: float) -> float:
    return min(BURST_UNITS, account.units + (now_s - account.counted_s) * _rate_of(account))
