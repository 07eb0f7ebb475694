"""Fence off former leaders at the switches, by election ids that rise with every term.

A switch carries out the writes of its primary alone, the controller with the highest election id (P4Runtime 1.4.1,
section 5). A new leader becomes primary at every switch before it writes to any. What its predecessor sent late then
comes too late everywhere.
"""

import asyncio
from collections.abc import Iterable
from contextlib import suppress
from typing import Protocol

from finsy import Switch
from finsy.p4arbitrator import Arbitrator
from finsy.proto import U128, p4r, rpc_code

from controller.southbound.p4runtime.reconnecting import ConnectionLostError

_BIDS_PER_TERM = 1 << 16


class Grant(Protocol):
    """The right to write in a leader's term; other controllers may have had it before, and may have it later."""

    @property
    def term(self) -> int:
        """The leader's term."""

    async def granted(self) -> None:
        """Wait until writing is allowed; what is to be written must then be sent at once."""

    def doubt(self) -> None:
        """Report that another controller is primary at a switch."""


def first_election_id(base_id: int, term: int) -> int:
    """Return the first election id of a term. Further ones are for switches that still hold an earlier stream's id."""
    return base_id + term * _BIDS_PER_TERM


class ArbitrationBarrier:
    """A barrier: wait until all switches have answered this controller's bids, but not longer than ``patience_s``.

    From then on no former leader can write to a switch that has answered.
    """

    def __init__(self, switches: Iterable[str], patience_s: float = 3.0) -> None:
        self._awaited = set(switches)
        self._patience_s = patience_s
        self._deadline_s: float | None = None
        self._all_arrived = asyncio.Event()

    async def arrive(self, switch: str) -> None:
        """Record that a switch has answered; wait until all have, or time is up."""
        if self._deadline_s is None:
            self._deadline_s = asyncio.get_running_loop().time() + self._patience_s
        self._awaited.discard(switch)
        if not self._awaited:
            self._all_arrived.set()
        with suppress(TimeoutError):
            async with asyncio.timeout_at(self._deadline_s):
                await self._all_arrived.wait()


def use_election_ids(switch: Switch, election_id: int, barrier: ArbitrationBarrier) -> None:
    """Make finsy use the election ids of this term, and wait at the barrier before it writes."""
    # finsy has no parameter for an arbitrator.
    switch._arbitrator = TermArbitrator(election_id, barrier)


class TermArbitrator(Arbitrator):
    """Arbitration with election ids of this term alone.

    finsy takes over the election id of the last primary where a switch has none. With that a former leader could take a
    switch back as soon as the stream of its successor breaks.
    """

    def __init__(self, election_id: int, barrier: ArbitrationBarrier) -> None:
        super().__init__(election_id)
        self._barrier = barrier

    async def handshake(self, switch: Switch, *, conflict: bool = False) -> None:
        """Bid for a connected switch, and wait until writing may begin.

        Raises:
            ConnectionLostError: An earlier stream of ours still holds the election id; the next bid is higher.
        """
        response = None
        if not conflict:
            await self._send(switch)
            response = await self._receive(switch)
        if response is None:
            self.election_id += 1
            raise ConnectionLostError(f"switch {switch.name}: an earlier stream still has the election id")
        self.is_primary = response.status.code == rpc_code.OK
        self.primary_id = U128.decode(response.election_id)
        await self._barrier.arrive(switch.name)

    async def update(self, switch: Switch, msg: p4r.MasterArbitrationUpdate) -> None:
        """Handle a change of the primary."""
        self.primary_id = U128.decode(msg.election_id)
        if msg.status.code == rpc_code.NOT_FOUND:
            msg.status.code = rpc_code.ALREADY_EXISTS  # a controller with a higher id may come back
        await super().update(switch, msg)

    def reset(self) -> None:
        """Forget the state of a stream that has ended; the next bid is the same."""
        self.is_primary = False
