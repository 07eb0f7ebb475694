"""What operators have decided by hand: whether planning is paused, and what is pinned. It outlives controllers."""

import asyncio
import logging
from collections.abc import AsyncIterator, Iterable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from typing import Protocol

from controller.clock import Clock
from controller.events import BurstLog, EventKind
from controller.planning.path_names import path_of
from policies.flows import FlowKey
from policies.pins import LevelPin, PathPin, Pin
from topologies.fabric import Fabric

_LOG = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Pause:
    """Planning is paused since a time; ``by`` is who asked for it, ``reason`` why. Released: all rules are out, too."""

    since_s: float
    by: str
    reason: str
    is_released: bool = False


@dataclass(frozen=True, slots=True)
class HandPin:
    """What is pinned for JOB or JOB/GROUP/NUMBER until a time: a level, or the name of a path.

    It names what it is about, so that it stays with its job, and after a reload is given the new names of its cables.
    """

    target: str
    level: int | None
    path: str | None
    since_s: float
    until_s: float
    by: str

    @property
    def job(self) -> str:
        """The job that it is about."""
        return self.target.partition("/")[0]

    @property
    def flow(self) -> FlowKey | None:
        """The flow that it is about; None: the whole job."""
        if self.path is None:
            return None
        job, group, number = self.target.split("/")
        return FlowKey(job, group, int(number))

    def on(self, fabric: Fabric) -> Pin:
        """The same for Snapshots of a fabric. Raises ValueError where that does not have the path."""
        if self.level is not None:
            return LevelPin(self.target, self.level, self.until_s, self.by)
        assert self.path is not None
        assert self.flow is not None
        return PathPin(self.flow, path_of(self.path, fabric), self.until_s, self.by)


class InterventionKeeper(Protocol):
    """Keeps interventions across restarts. Its methods raise StoreError."""

    async def keep_pause(self, pause: Pause | None) -> None:
        """Keep that planning is paused; None: that it is not."""

    async def keep_pin(self, pin: HandPin) -> None:
        """Keep a pin, in the place of another one of the same target; those that expired before it began may go."""

    async def forget_pin(self, target: str) -> None:
        """Forget the pin of a target."""


class Interventions:
    """The pause and the pins of a controller.

    Args:
        clock: The time at which pins expire.
        pause: The pause of the controller before; None: planning goes on.
        pins: The pins of the controller before.
        keeper: Keeps both; None: they end with the process.

    Attributes:
        pause: Since when and why planning is paused; None: it is not.
    """

    def __init__(
        self,
        clock: Clock,
        pause: Pause | None = None,
        pins: Iterable[HandPin] = (),
        keeper: InterventionKeeper | None = None,
    ) -> None:
        self.pause = pause
        self._clock = clock
        self._keeper = keeper
        self._pins = {pin.target: pin for pin in pins}
        self._log = BurstLog(_LOG)
        self._changing = asyncio.Lock()

    @property
    def pins(self) -> tuple[HandPin, ...]:
        """The pins that have not expired, in the order in which they were made."""
        now_s = self._clock.now_s()
        return tuple(pin for pin in self._pins.values() if pin.until_s > now_s)

    @property
    def next_expiry_s(self) -> float | None:
        """When the next pin expires; None where there is none."""
        return min((pin.until_s for pin in self._pins.values()), default=None)

    def expire(self) -> bool:
        """Drop the pins that have expired, and log it; returns whether any has. To be called in an event loop."""
        left = {pin.target: pin for pin in self.pins}
        expired = [target for target in self._pins if target not in left]
        self._pins = left
        for target in expired:
            self._log.tell(EventKind.UNPINNED, "%s: no longer pinned: its time is over", target, target=target)
        return bool(expired)

    def pins_on(self, fabric: Fabric) -> tuple[Pin, ...]:
        """The pins for Snapshots of a fabric, without those whose path it does not have."""
        found = []
        for pin in self.pins:
            try:
                found.append(pin.on(fabric))
            except ValueError:  # `show pins` says so
                continue
        return tuple(found)

    async def begin_pause(self, by: str, reason: str, *, is_released: bool) -> bool:
        """Pause planning; returns False where it was paused, and released if that is asked for. Raises StoreError."""
        async with self._changing:
            known = self.pause
            if known is not None and (known.is_released or not is_released):
                return False
            pause = Pause(self._clock.now_s(), by, reason, is_released)
            if known is not None:
                pause = replace(pause, reason=reason or known.reason)
            await self._keep_pause(pause)
            return True

    async def end_pause(self) -> bool:
        """Plan again; returns False where planning was not paused. Raises StoreError."""
        async with self._changing:
            if self.pause is None:
                return False
            await self._keep_pause(None)
            return True

    async def pin(self, pin: HandPin) -> None:
        """Pin something, in the place of what was pinned for the same target. Raises StoreError."""
        async with self._changing:
            if self._keeper is not None:
                await self._keeper.keep_pin(pin)
            others = {target: each for target, each in self._pins.items() if target != pin.target}
            self._pins = {**others, pin.target: pin}  # a thread may be reading those before

    async def unpin(self, target: str) -> bool:
        """Remove a pin; returns False where there is none. Raises StoreError."""
        async with self._changing:
            if target not in {pin.target for pin in self.pins}:
                return False
            if self._keeper is not None:
                await self._keeper.forget_pin(target)
            self._pins = {each: pin for each, pin in self._pins.items() if each != target}
            return True

    @asynccontextmanager
    async def unchanged(self) -> AsyncIterator[None]:
        """Have nobody pause, resume, pin or unpin anything while the context lasts."""
        async with self._changing:
            yield

    def take_over(self, refitted: Mapping[HandPin, HandPin | None]) -> None:
        """Go on with what has become of pins on another fabric; None: they have ended.

        To be called in ``unchanged``.
        """
        after = {pin.target: refitted.get(pin, pin) for pin in self._pins.values()}
        self._pins = {target: pin for target, pin in after.items() if pin is not None}

    async def keep(self, refitted: Mapping[HandPin, HandPin | None]) -> None:
        """Store what has become of these pins, but for those that are others by now. Raises StoreError."""
        async with self._changing:
            for before, after in refitted.items() if self._keeper is not None else ():
                assert self._keeper is not None
                if after == before or self._pins.get(before.target) != after:
                    continue
                if after is None:
                    await self._keeper.forget_pin(before.target)
                else:
                    await self._keeper.keep_pin(after)

    async def _keep_pause(self, pause: Pause | None) -> None:
        if self._keeper is not None:
            await self._keeper.keep_pause(pause)
        self.pause = pause
