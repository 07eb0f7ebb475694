"""How the switches themselves keep a controller out that leads no longer: election ids that rise from term to term.

P4Runtime carries out the writes of the highest bidder alone (P4Runtime 1.4.1, section 5). So who leads bids at every
switch before it writes to any: what its predecessor has sent late then comes too late everywhere.
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
    """The right to write, for a term of office; others may have had it before, and may have it afterwards."""

    @property
    def term(self) -> int: ...

    async def granted(self) -> None:
        """Return as soon as something may be written, which is to be sent then and there."""

    def doubt(self) -> None:
        """A switch obeys another controller."""


def first_bid(base_id: int, term: int) -> int:
    """The election id to bid first in a term; the next ones are for where a switch has not let go of the first."""
    return base_id + term * _BIDS_PER_TERM


class Claims:
    """Which switches let nobody write any longer who led before; those that do not answer are waited for so long."""

    def __init__(self, switches: Iterable[str], patience_s: float = 3.0) -> None:
        self._unclaimed = set(switches)
        self._patience_s = patience_s
        self._end_s: float | None = None
        self._all_claimed = asyncio.Event()

    async def claimed(self, switch: str) -> None:
        """A switch has been bid for; return when all are, or no other is to be waited for any longer."""
        if self._end_s is None:
            self._end_s = asyncio.get_running_loop().time() + self._patience_s
        self._unclaimed.discard(switch)
        if not self._unclaimed:
            self._all_claimed.set()
        with suppress(TimeoutError):
            async with asyncio.timeout_at(self._end_s):
                await self._all_claimed.wait()


def fence(switch: Switch, election_id: int, claims: Claims) -> None:
    """Have finsy bid for a switch with one's own election ids, and leave it alone until all are claimed."""
    # It takes no arbitrator from outside.
    switch._arbitrator = OwnBids(election_id, claims)


class OwnBids(Arbitrator):
    """Arbitration with bids of one's own term alone.

    finsy's bids as much as the last primary where a switch has none: with that, who led before could take a switch back
    from its successor as soon as the successor's stream breaks.
    """

    def __init__(self, election_id: int, claims: Claims) -> None:
        super().__init__(election_id)
        self._claims = claims

    async def handshake(self, switch: Switch, *, conflict: bool = False) -> None:
        """Bid for a switch that is connected, and wait until writing may begin.

        Raises ConnectionLostError where an earlier stream of ours still stands there: the next bid is higher.
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
        await self._claims.claimed(switch.name)

    async def update(self, switch: Switch, msg: p4r.MasterArbitrationUpdate) -> None:
        """Something has changed about who is primary."""
        self.primary_id = U128.decode(msg.election_id)
        if msg.status.code == rpc_code.NOT_FOUND:
            msg.status.code = rpc_code.ALREADY_EXISTS  # who bid more may come back
        await super().update(switch, msg)

    def reset(self) -> None:
        """The stream has ended; the next bids the same."""
        self.is_primary = False
