"""What keeps former leaders from switches, whatever protocol these speak.

A new leader takes over every switch before it writes to any, with a number that its term gives. What its predecessor
sent late then comes too late everywhere.
"""

import asyncio
from collections.abc import Iterable
from contextlib import suppress
from typing import Protocol

_BIDS_PER_TERM = 1 << 16


def first_election_id(base_id: int, term: int) -> int:
    """Return the first election id of a term. Further ones are for switches that still hold an earlier stream's id.

    In OpenFlow it is the generation id. A greater ``base_id`` takes switches back that know a later term, as where the
    database is new.
    """
    return base_id + term * _BIDS_PER_TERM


class Grant(Protocol):
    """The right to write in a leader's term; other controllers may have had it before, and may have it later."""

    @property
    def term(self) -> int:
        """The leader's term."""

    async def granted(self) -> None:
        """Wait until writing is allowed; what is to be written must then be sent at once."""

    def doubt(self) -> None:
        """Report that another controller has a switch."""


class TakeoverBarrier:
    """A barrier: wait until all switches are taken over, but not longer than ``patience_s``.

    From then on no former leader can write to a switch that has answered.
    """

    def __init__(self, switches: Iterable[str], patience_s: float = 3.0) -> None:
        self._awaited = set(switches)
        self._patience_s = patience_s
        self._deadline_s: float | None = None
        self._all_arrived = asyncio.Event()

    async def arrive(self, switch: str) -> None:
        """Record that a switch is taken over; wait until all are, or time is up."""
        if self._deadline_s is None:
            self._deadline_s = asyncio.get_running_loop().time() + self._patience_s
        self._awaited.discard(switch)
        if not self._awaited:
            self._all_arrived.set()
        with suppress(TimeoutError):
            async with asyncio.timeout_at(self._deadline_s):
                await self._all_arrived.wait()
