"""Fence off former leaders at the switches, by election ids that rise with every term.

A switch carries out the writes of its primary alone, the controller with the highest election id (P4Runtime 1.4.1,
section 5). A new leader becomes primary at every switch before it writes to any. What its predecessor sent late then
comes too late everywhere.
"""

from finsy import Switch
from finsy.proto import U128, p4r, rpc_code, stratum

from controller.southbound.fencing import TakeoverBarrier
from controller.southbound.p4runtime.reconnecting import ConnectionLostError
from controller.southbound.p4runtime.roles import RoleArbitrator


class TermArbitrator(RoleArbitrator):
    """Arbitration with election ids of this term alone.

    finsy takes over the election id of the last primary where a switch has none. With that a former leader could take a
    switch back as soon as the stream of its successor breaks.
    """

    def __init__(self, election_id: int, barrier: TakeoverBarrier, config: stratum.P4RoleConfig | None = None) -> None:
        super().__init__(election_id, config)
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
