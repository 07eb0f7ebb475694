"""Give switches that refuse their entries these again, after pauses that grow."""

import asyncio
from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import Generic

from controller.southbound.southbound import SouthboundError, SwitchCondition
from controller.southbound.states import EntryT
from controller.southbound.switch_writer import SwitchWriter

_FIRST_PAUSE_S, _LAST_PAUSE_S = 1.0, 60.0
_TICK_S = 0.25


class TryingAgain(Generic[EntryT]):
    """Tries the switches of these writers again that refuse what they are to hold, such as one whose table was full.

    Args:
        writers: The writers by switch; there may be others later.
        on_tried: Called with each switch that has been tried again.
    """

    def __init__(self, writers: Mapping[str, SwitchWriter[EntryT]], on_tried: Callable[[str], None]) -> None:
        self._writers = writers
        self._on_tried = on_tried
        self._pauses_s: dict[str, float] = {}
        """How long each switch that refuses is left alone, until it does not."""
        self._trying: dict[str, asyncio.Task[None]] = {}

    async def run(self) -> None:
        """Go on until cancelled."""
        while True:
            await asyncio.sleep(_TICK_S)
            for name in [name for name in self._pauses_s if name not in self._trying and not self._refuses(name)]:
                del self._pauses_s[name]
            for name in self._writers:
                if name not in self._trying and self._refuses(name):
                    self._trying[name] = asyncio.create_task(self._try(name))

    async def stop(self) -> None:
        """End what is under way."""
        tasks = list(self._trying.values())
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    def _refuses(self, name: str) -> bool:
        return name in self._writers and self._writers[name].condition is SwitchCondition.REFUSES

    async def _try(self, name: str) -> None:
        """Try a switch again after its pause, unless something else has changed its mind."""
        pause_s = self._pauses_s[name] = min(2 * self._pauses_s.get(name, _FIRST_PAUSE_S / 2), _LAST_PAUSE_S)
        try:
            await asyncio.sleep(pause_s)
            if self._refuses(name):
                with suppress(SouthboundError):  # its condition says so
                    await self._writers[name].try_again()
                self._on_tried(name)
        finally:
            del self._trying[name]
