"""Who lets the time of an emulated fabric pass: virtual time, as fast as the machine goes.

The other kind is in ``emulator.wall_clock``; what drives a fabric through a ``Clock`` need not know which it is.
"""

import asyncio
from collections.abc import Callable, Iterable
from typing import Protocol

from emulator.fabric import EmulatedFabric
from emulator.observations import Completion, PacketIn

Deliver = Callable[[Iterable[PacketIn]], None]


class Clock(Protocol):
    """Lets the time of one fabric pass; between two calls it stands still."""

    async def run(self, until_ps: int) -> tuple[Completion, ...]:
        """Let time pass up to ``until_ps``, or to the first moment at which transfers are complete.

        Raises ValueError for a time that has passed, or beyond the end of the fabric's clock.
        """
        ...


class VirtualClock:
    """The fabric's own time, which passes as fast as the machine can follow every packet.

    ``exclusive`` is held while it does, as whoever reads or writes switches holds it meanwhile. ``deliver`` is given
    what has reached the switches' control planes since.
    """

    def __init__(self, fabric: EmulatedFabric, exclusive: asyncio.Lock, deliver: Deliver) -> None:
        self._fabric = fabric
        self._exclusive = exclusive
        self._deliver = deliver

    async def run(self, until_ps: int) -> tuple[Completion, ...]:
        """See Clock."""
        async with self._exclusive:
            completions = await asyncio.to_thread(self._fabric.run, until_ps)
        self._deliver(self._fabric.packets_in())
        return completions
