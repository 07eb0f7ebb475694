"""Keeps one switch at what it should hold, through refusals and restarts."""

import asyncio
from collections import Counter
from collections.abc import Callable, Sequence, Set
from dataclasses import dataclass
from enum import StrEnum
from typing import Protocol

from controller.southbound.p4runtime.difference import State, Update, UpdateKind, difference, state_of
from controller.southbound.p4runtime.entries import RULES, Entity, EntityKey, next_hop_of
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


class WriteOutcome(StrEnum):
    """What became of a request to a switch."""

    ACKNOWLEDGED = "acknowledged"
    REFUSED = "refused"
    UNANSWERED = "unanswered"


@dataclass(frozen=True, slots=True)
class SwitchWrite:
    """A request to a switch: how many updates of each kind, what became of it, and why if it was refused."""

    switch: str
    inserted: int
    modified: int
    deleted: int
    outcome: WriteOutcome
    problem: str = ""


class SwitchWriter:
    """One switch: what it should hold, what it is known to hold, and the difference written whenever it is connected.

    The flow rules that it is found with at the first connection stay until ``forget_found``, so that a controller that
    has just started takes nothing away; a rule that is held anew in their place replaces them at once. ``problem`` says
    what is wrong, and is empty where nothing is. Every request is told to ``on_write``.
    """

    def __init__(self, name: str, base: State, on_write: Callable[[SwitchWrite], None] | None = None) -> None:
        self.name = name
        self._on_write = on_write
        self._base = base
        self._held_base = base
        self._flows: State = {}
        self._dead_ports: Set[int] = frozenset()
        self._found: frozenset[EntityKey] | None = None
        self._keeps_found = True
        self._held: State | None = None
        self._access: Access | None = None
        self.problem = ""
        self._lock = asyncio.Lock()
        self._caught_up = asyncio.Event()
        self._lost = asyncio.Event()
        self._away = asyncio.Event()
        self._away.set()

    @property
    def num_rules(self) -> int | None:
        """Flow rules that the switch is known to hold; None while it is away or being written to."""
        return None if self._access is None or self._held is None else len(self._held)

    @property
    def condition(self) -> SwitchCondition:
        """How things stand with the switch."""
        if self._lost.is_set():
            return SwitchCondition.LOST
        if self._access is None:
            return SwitchCondition.AWAY
        if self.problem:
            return SwitchCondition.REFUSES
        return SwitchCondition.CAUGHT_UP if self._caught_up.is_set() else SwitchCondition.BEHIND

    async def hold(self, flows: State) -> None:
        """Hold the base entries and these; returns when acknowledged, or at once where the switch is away.

        Raises SouthboundError where the switch refuses.
        """
        async with self._lock:
            if self._caught_up.is_set() and flows == self._flows:
                return
            self._flows = flows
            self._caught_up.clear()
            await self._catch_up()

    async def reroute(self, flows: State, base: State, dead_ports: Set[int]) -> None:
        """The same, with other base entries from now on, which are written behind the flows.

        What was found to lead into a dead port is held no longer.
        """
        async with self._lock:
            self._flows, self._base, self._dead_ports = flows, base, dead_ports
            self._caught_up.clear()
            await self._catch_up()

    async def forget_found(self) -> None:
        """Hold nothing that was found and not written since. Raises SouthboundError where the switch refuses."""
        async with self._lock:
            self._keeps_found = False
            self._caught_up.clear()
            await self._catch_up()

    async def connect(self, access: Access) -> None:
        """The switch is there: read it back and write what differs. Raises SouthboundError where it refuses."""
        async with self._lock:
            self._access, self._held, self.problem = access, None, ""
            self._lost.clear()
            self._away.clear()
            await self._catch_up()

    def disconnect(self) -> None:
        """The switch is away."""
        self._access, self.problem = None, ""
        self._lost.clear()
        self._caught_up.clear()
        self._away.set()

    def lose(self, problem: str) -> None:
        """Another controller has the switch, and is left alone with it until the switch says otherwise."""
        self.disconnect()
        self.problem = problem
        self._lost.set()

    async def caught_up(self) -> None:
        """Return once the switch is connected and has acknowledged all it should hold.

        Raises SouthboundError where it is lost to another controller.
        """
        waiting = [asyncio.ensure_future(event.wait()) for event in (self._caught_up, self._lost)]
        try:
            await asyncio.wait(waiting, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for future in waiting:
                future.cancel()
        if self._lost.is_set():
            raise SouthboundError(f"switch {self.name!r}: {self.problem}")

    async def away(self) -> None:
        """Return once the switch is not connected."""
        await self._away.wait()

    async def _catch_up(self) -> None:
        access = self._access
        if access is None:
            return
        try:
            await self._write_difference(access)
        except SwitchAwayError:
            self._drop(access)
        except SwitchRefusalError as refusal:
            self.problem = str(refusal)
            raise SouthboundError(f"switch {self.name!r}: {refusal}") from refusal
        else:
            if self._access is access:
                self.problem = ""
                self._caught_up.set()

    def _drop(self, access: Access) -> None:
        if self._access is access:
            self.disconnect()

    async def _write_difference(self, access: Access) -> None:
        # Unknown until all is acknowledged: after a failure the switch is read again.
        held, self._held = self._held, None
        base = self._base
        if held is None:
            found = state_of(await access.read())
            if self._found is None:
                self._found = frozenset(key for key in found if key.kind in RULES)
            flows = self._desired_flows(found)
            stages = difference(found, {**base, **flows})
        else:
            flows = self._desired_flows(held)
            stages = difference(held, flows)
            if base is not self._held_base:
                stages += difference(self._held_base, base)
        for stage in stages:
            for first in range(0, len(stage), MAX_UPDATES_PER_WRITE):
                await self._write(access, stage[first : first + MAX_UPDATES_PER_WRITE])
        self._held, self._held_base = flows, base

    async def _write(self, access: Access, updates: Sequence[Update]) -> None:
        try:
            await access.write(updates)
        except SwitchRefusalError as refusal:
            self._note(updates, WriteOutcome.REFUSED, str(refusal))
            raise
        except BaseException:
            self._note(updates, WriteOutcome.UNANSWERED)
            raise
        self._note(updates, WriteOutcome.ACKNOWLEDGED)

    def _note(self, updates: Sequence[Update], outcome: WriteOutcome, problem: str = "") -> None:
        if self._on_write is not None:
            kinds = Counter(update.kind for update in updates)
            inserted, modified, deleted = (kinds[kind] for kind in UpdateKind)
            self._on_write(SwitchWrite(self.name, inserted, modified, deleted, outcome, problem))

    def _desired_flows(self, held: State) -> State:
        found = self._found if self._keeps_found and self._found else ()
        # In the order of what is held: that of a set would differ from process to process.
        kept = {
            key: entity for key, entity in held.items() if key in found and next_hop_of(entity) not in self._dead_ports
        }
        return kept | dict(self._flows)
