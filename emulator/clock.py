"""Clocks of an emulated fabric: the ``Clock`` protocol and the virtual clock, which runs as fast as the machine.

``emulator.wall_clock`` has the clock that follows wall time. Callers of a ``Clock`` need not know which one it is.
"""

import asyncio
from collections.abc import Callable, Iterable
from typing import Protocol

from emulator.fabric import EmulatedFabric
from emulator.observations import Completion, PacketIn

Deliver = Callable[[Iterable[PacketIn]], None]


class Clock(Protocol):
    """Advances the time of one fabric; between two calls time stands still."""

    async def run(self, until_ps: int) -> tuple[Completion, ...]:
        """Advance to ``until_ps``, or to the first moment at which a transfer is complete.

        Raises ValueError for a time in the past, or beyond the end of the fabric's clock.
        """
        ...


class VirtualClock:
    """Virtual time: advances as fast as the machine can process packets.

    The clock holds ``exclusive`` while time advances; readers and writers of switches hold the same lock. Afterwards it
    passes the packets that reached the switches' control planes to ``deliver``.
    """

    def __init__(self, fabric: EmulatedFabric, exclusive: asyncio.Lock, deliver: Deliver) -> None:
        self._fabric = fabric
        self._exclusive = exclusive
        self._deliver = deliver

    async def run(self, until_ps: int) -> tuple[Completion, ...]:
        """Advance as ``Clock.run`` describes."""
        async with self._exclusive:
            completions = await asyncio.to_thread(self._fabric.run, until_ps)
        self._deliver(self._fabric.packets_in())
        return completions
