"""A rate limit for every connection, so that none can starve the others."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass

from controller.errors import DaemonError

UNITS_PER_S = 1_000
BURST_UNITS = 10_000
BYTES_PER_UNIT = 4_096
"""A call costs one unit, and one more for this many bytes: both take about as long to handle."""

MAX_DELAY_S = 5.0
MAX_HELD_BYTES = 16 << 20
PENALTY_S = 2.0
MAX_STREAMS_PER_CONNECTION = 1024
"""Concurrent calls of a connection, which gRPC limits. With the penalty, this bounds the rate of refusals."""


class RateLimitError(DaemonError):
    """The connection asks for more than its share; the message says of what."""


@dataclass(slots=True)
class _Account:
    """The units that a connection has left, negative where it owes some; ``held_bytes`` are those of its calls."""

    units: float
    counted_s: float
    held_bytes: int = 0


class RateLimiter:
    """Admits the calls of every connection: a burst at once, then a steady rate.

    It counts wall-clock time whatever clock the controller uses, since it protects the processor.

    Example::

        async with limiter.admitted(context.peer(), len(request)):
            return answer(request)
    """

    def __init__(self) -> None:
        self._accounts: dict[str, _Account] = {}

    @asynccontextmanager
    async def admitted(self, connection: str, size_bytes: int) -> AsyncIterator[None]:
        """Wait until the connection may make a call. Raises RateLimitError, after a penalty, if that takes too long."""
        account = self._account(connection)
        if account.held_bytes + size_bytes > MAX_HELD_BYTES:
            await asyncio.sleep(PENALTY_S)
            raise RateLimitError(f"this connection has more than {MAX_HELD_BYTES:,} bytes of requests waiting")
        account.held_bytes += size_bytes
        try:
            await self._pay(account, 1 + size_bytes / BYTES_PER_UNIT)
            yield
        finally:
            account.held_bytes -= size_bytes

    async def charge(self, connection: str, size_bytes: int) -> None:
        """Wait until the connection may receive another answer of this size. Raises RateLimitError as ``admitted``."""
        await self._pay(self._account(connection), size_bytes / BYTES_PER_UNIT)

    async def _pay(self, account: _Account, units: float) -> None:
        delay_s = (units - account.units) / UNITS_PER_S
        if delay_s > MAX_DELAY_S:
            await asyncio.sleep(PENALTY_S)
            raise RateLimitError(
                f"this connection calls more often than {UNITS_PER_S} times a second, or sends as much"
            )
        account.units -= units
        if delay_s > 0:
            await asyncio.sleep(delay_s)

    def _account(self, connection: str) -> _Account:
        now_s = asyncio.get_running_loop().time()
        if connection not in self._accounts:
            self._forget_idle(now_s)
            self._accounts[connection] = _Account(BURST_UNITS, now_s)
        account = self._accounts[connection]
        account.units = min(BURST_UNITS, account.units + (now_s - account.counted_s) * UNITS_PER_S)
        account.counted_s = now_s
        return account

    def _forget_idle(self, now_s: float) -> None:
        """Drop the accounts that are full again by now: a new one is equal."""
        self._accounts = {
            connection: account
            for connection, account in self._accounts.items()
            if account.held_bytes or account.units + (now_s - account.counted_s) * UNITS_PER_S < BURST_UNITS
        }
