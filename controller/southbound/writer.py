"""Keeps one switch at what it should hold, through refusals and restarts."""

import asyncio
from collections.abc import Iterable, Sequence
from typing import Protocol

from controller.southbound.difference import State, Update, difference, state_of
from controller.southbound.entries import Entity, EntityKey, Kind
from controller.southbound.southbound import SouthboundError, SwitchCondition

MAX_UPDATES_PER_WRITE = 500
"""So that the error detail of every update, about 100 bytes, fits into the 64 KiB of metadata that the client takes."""


class SwitchAwayError(Exception):
    """The connection to the switch is lost."""


class SwitchRefusalError(Exception):
    """The switch refused an update; the message says which."""


class Access(Protocol):
    """Read and write access to one connected switch; both raise SwitchAwayError, writing SwitchRefusalError too."""

    async def read(self) -> list[Entity]: ...

    async def write(self, updates: Sequence[Update]) -> None: ...


class SwitchWriter:
    """One switch: what it should hold, what it is known to hold, and the difference written whenever it is connected.

    Until the first ``hold`` it keeps whatever flow rules it is found with, so that a controller that has just started
    takes nothing away.
    """

    def __init__(self, name: str, base: Iterable[Entity]) -> None:
        self.name = name
        self._base = state_of(base)
        self._flows: dict[EntityKey, Entity] | None = None
        self._held: State | None = None
        self._access: Access | None = None
        self._lock = asyncio.Lock()
        self._caught_up = asyncio.Event()
        self._refusal = ""
        self._loss = ""

    @property
    def condition(self) -> SwitchCondition:
        """How things stand with the switch."""
        if self._loss:
            return SwitchCondition.LOST
        if self._access is None:
            return SwitchCondition.AWAY
        if self._refusal:
            return SwitchCondition.REFUSES
        return SwitchCondition.CAUGHT_UP if self._caught_up.is_set() else SwitchCondition.BEHIND

    @property
    def problem(self) -> str:
        """What is wrong; empty where nothing is."""
        return self._loss or self._refusal

    async def hold(self, flow_entries: Iterable[Entity]) -> None:
        """Hold the base entries and these; returns when acknowledged, or at once where the switch is away.

        Raises SouthboundError where the switch refuses.
        """
        async with self._lock:
            self._flows = state_of(flow_entries)
            self._caught_up.clear()
            await self._catch_up()

    async def connect(self, access: Access) -> None:
        """The switch is there: read it back and write what differs. Raises SouthboundError where it refuses."""
        async with self._lock:
            self._access, self._held, self._loss = access, None, ""
            await self._catch_up()

    def disconnect(self) -> None:
        """The switch is away."""
        self._access, self._loss = None, ""
        self._caught_up.clear()

    def lose(self, problem: str) -> None:
        """The switch is there, but somebody else has it."""
        self.disconnect()
        self._loss = problem

    async def caught_up(self) -> None:
        """Return once the switch is connected and has acknowledged all it should hold."""
        await self._caught_up.wait()

    async def _catch_up(self) -> None:
        access = self._access
        if access is None:
            return
        try:
            await self._write_difference(access)
        except SwitchAwayError:
            self.disconnect()
        except SwitchRefusalError as refusal:
            self._refusal = str(refusal)
            raise SouthboundError(f"switch {self.name!r}: {refusal}") from refusal
        else:
            self._refusal = ""
            if self._access is access:
                self._caught_up.set()

    async def _write_difference(self, access: Access) -> None:
        # Unknown until all is acknowledged: after a failure the switch is read again.
        held, self._held = self._held, None
        if held is None:
            held = state_of(await access.read())
        desired = self._desired(held)
        for stage in difference(held, desired):
            for first in range(0, len(stage), MAX_UPDATES_PER_WRITE):
                await access.write(stage[first : first + MAX_UPDATES_PER_WRITE])
        self._held = desired

    def _desired(self, held: State) -> State:
        kept = self._flows
        if kept is None:
            kept = {key: entity for key, entity in held.items() if key.kind is Kind.FLOW}
        return self._base | kept
