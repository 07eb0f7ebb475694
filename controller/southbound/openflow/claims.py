"""Claims to be the master of switches: by which number, and again where another controller has had a switch."""

import asyncio
import math
from collections.abc import Callable
from contextlib import suppress

from controller.southbound.fencing import Grant, TakeoverBarrier, first_election_id
from controller.southbound.openflow.channel import OpenFlowChannel
from controller.southbound.openflow.channel_errors import RefusedError

_AGAIN_S = 60.0
"""How long a switch is left to another controller before one without terms claims it again."""
_TICK_S = 1.0

TakeOver = Callable[[str, OpenFlowChannel], None]
"""Takes over a switch by its name and channel."""


class Claims:
    """The claims of a controller, and the switches that it has lost.

    A claim has 64 bits of an election id as its generation id; a switch refuses those before the last one (OpenFlow
    1.5.1, section 6.3.7). With a ``grant`` it is that of the grant's term, and a former leader is refused. Without one
    it is ``election_id``: of two controllers with the same id, the last one to claim has the switch. A switch that
    refuses to give roles at all is then written to as it is.
    """

    def __init__(self, election_id: int, grant: Grant | None, barrier: TakeoverBarrier) -> None:
        self._election_id = election_id
        self._grant = grant
        self._barrier = barrier
        self._lost: dict[str, OpenFlowChannel] = {}
        self._again_s: dict[str, float] = {}
        """When lost switches are claimed again, in the event loop's time."""

    async def claim(self, name: str, channel: OpenFlowChannel) -> None:
        """Become the master of a switch; with a grant, wait until all are taken over. Raises what a claim raises."""
        if self._grant is None:
            with suppress(RefusedError):
                await channel.claim(self._election_id)
            return
        await channel.claim(first_election_id(self._election_id, self._grant.term))
        await self._barrier.arrive(name)

    def lose(self, name: str, channel: OpenFlowChannel) -> None:
        """Note that another controller has a switch."""
        if self._lost.get(name) is not channel:
            self._lost[name] = channel
            # With a grant, only another term is a reason to claim again, and it has another southbound.
            is_alone = self._grant is None
            self._again_s[name] = asyncio.get_running_loop().time() + _AGAIN_S if is_alone else math.inf

    def regain(self, name: str, channel: OpenFlowChannel) -> None:
        """Note that a switch says that we may write to it; it is claimed again soon if it was lost."""
        if self._lost.get(name) is channel:
            self._again_s[name] = 0.0

    async def keep_claiming(self, take_over: TakeOver) -> None:
        """Take over lost switches again when their time has come, until cancelled."""
        while True:
            await asyncio.sleep(_TICK_S)
            now_s = asyncio.get_running_loop().time()
            for name in [name for name, again_s in self._again_s.items() if again_s <= now_s]:
                del self._again_s[name]
                channel = self._lost.pop(name)
                if channel.is_open:
                    take_over(name, channel)
