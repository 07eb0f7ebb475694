"""Keep one switch in the desired state, through refusals and restarts."""

import asyncio
from collections import Counter
from collections.abc import Callable, Sequence, Set
from dataclasses import dataclass
from enum import StrEnum
from functools import partial
from typing import Protocol

from controller.background import Worker
from controller.errors import DaemonError
from controller.southbound.p4runtime.difference import Stage, State, Update, UpdateKind, difference, state_of
from controller.southbound.p4runtime.entries import RULES, Entity, EntityKey, next_hop_of
from controller.southbound.southbound import SouthboundError, SwitchCondition

MAX_UPDATES_PER_WRITE = 500
"""The error details of so many updates, about 100 bytes each, fit into the 64 KiB of metadata that clients accept."""


class SwitchAwayError(DaemonError):
    """The connection to the switch is lost."""


class SwitchRefusalError(DaemonError):
    """The switch refused an update; the message tells which."""


class Access(Protocol):
    """Read and write access to one connected switch.

    Both methods raise SwitchAwayError; ``write`` also raises SwitchRefusalError.
    """

    async def read(self) -> list[Entity]:
        """Read the controller's own entities."""

    async def write(self, updates: Sequence[Update]) -> None:
        """Write updates in one request."""


class WriteOutcome(StrEnum):
    """The outcome of a write request to a switch."""

    ACKNOWLEDGED = "acknowledged"
    REFUSED = "refused"
    UNANSWERED = "unanswered"


@dataclass(frozen=True, slots=True)
class SwitchWrite:
    """A write request to a switch: the number of updates of each kind, the outcome, and the reason of a refusal."""

    switch: str
    inserted: int
    modified: int
    deleted: int
    outcome: WriteOutcome
    problem: str = ""


class SwitchWriter:
    """One switch: its desired entries, those it is known to hold, and the writes that make up the difference.

    Rules that the switch held at the first connection stay until ``forget_found``, so that a controller that has just
    started deletes nothing; a new rule in the place of one replaces it at once. ``problem`` says what is wrong, and is
    empty where nothing is. ``on_write`` is called after every request. ``worker`` compares large states.
    """

    def __init__(
        self,
        name: str,
        base: State,
        on_write: Callable[[SwitchWrite], None] | None = None,
        worker: Worker | None = None,
    ) -> None:
        self.name = name
        self._worker = worker or Worker(name)
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
        """Rules that the switch is known to hold, None while it is away or being written to."""
        return None if self._access is None or self._held is None else len(self._held)

    @property
    def condition(self) -> SwitchCondition:
        """The state of the switch as the controller sees it."""
        if self._lost.is_set():
            return SwitchCondition.LOST
        if self._access is None:
            return SwitchCondition.AWAY
        if self.problem:
            return SwitchCondition.REFUSES
        return SwitchCondition.CAUGHT_UP if self._caught_up.is_set() else SwitchCondition.BEHIND

    async def set_rules(self, flows: State) -> None:
        """Give the switch the base entries and these rules; return when acknowledged, at once if the switch is away.

        Raises:
            SouthboundError: The switch refuses.
        """
        async with self._lock:
            if self._caught_up.is_set() and flows == self._flows:
                return
            self._flows = flows
            self._caught_up.clear()
            await self._catch_up()

    async def reroute(self, flows: State, base: State, dead_ports: Set[int]) -> None:
        """Do the same with new base entries, which are written after the rules.

        Rules found at the first connection that lead into a dead port are deleted.

        Raises:
            SouthboundError: The switch refuses.
        """
        async with self._lock:
            self._flows, self._base, self._dead_ports = flows, base, dead_ports
            self._caught_up.clear()
            await self._catch_up()

    async def forget_found(self) -> None:
        """Delete what was found at the first connection and not written since.

        Raises:
            SouthboundError: The switch refuses.
        """
        async with self._lock:
            self._keeps_found = False
            self._caught_up.clear()
            await self._catch_up()

    async def connect(self, access: Access) -> None:
        """Handle a new connection: read the switch back and write what differs.

        Raises:
            SouthboundError: The switch refuses.
        """
        async with self._lock:
            self._access, self._held, self.problem = access, None, ""
            self._lost.clear()
            self._away.clear()
            await self._catch_up()

    def disconnect(self) -> None:
        """Handle the loss of the connection."""
        self._access, self.problem = None, ""
        self._lost.clear()
        self._caught_up.clear()
        self._away.set()

    def mark_lost(self, problem: str) -> None:
        """Handle the loss of the switch to another controller; it is left alone until it reports otherwise."""
        self.disconnect()
        self.problem = problem
        self._lost.set()

    async def caught_up(self) -> None:
        """Wait until the switch is connected and has acknowledged all its desired entries.

        Raises:
            SouthboundError: Another controller has taken over the switch.
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
        """Wait until the switch is not connected."""
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
        # Unknown until all is acknowledged, so that the switch is read again after a failure.
        held, self._held = self._held, None
        base = self._base
        if held is None:
            entities = await access.read()
            flows, stages = await self._worker.run(partial(self._from_found, entities), len(entities) + len(base))
        else:
            flows, stages = await self._worker.run(partial(self._from_held, held), len(held) + len(self._flows))
        for stage in stages:
            for first in range(0, len(stage), MAX_UPDATES_PER_WRITE):
                await self._write(access, stage[first : first + MAX_UPDATES_PER_WRITE])
        self._held, self._held_base = flows, base

    def _from_found(self, entities: Sequence[Entity]) -> tuple[State, tuple[Stage, ...]]:
        """The rules that the switch is to have, and the updates to them from what was read."""
        found = state_of(entities)
        if self._found is None:
            self._found = frozenset(key for key in found if key.kind in RULES)
        flows = self._desired_flows(found)
        return flows, difference(found, {**self._base, **flows})

    def _from_held(self, held: State) -> tuple[State, tuple[Stage, ...]]:
        """The same from the rules that it is known to hold."""
        flows = self._desired_flows(held)
        stages = difference(held, flows)
        if self._base is not self._held_base:
            stages += difference(self._held_base, self._base)
        return flows, stages

    async def _write(self, access: Access, updates: Sequence[Update]) -> None:
        try:
            await access.write(updates)
        except SwitchRefusalError as refusal:
            self._report(updates, WriteOutcome.REFUSED, str(refusal))
            raise
        except BaseException:
            self._report(updates, WriteOutcome.UNANSWERED)
            raise
        self._report(updates, WriteOutcome.ACKNOWLEDGED)

    def _report(self, updates: Sequence[Update], outcome: WriteOutcome, problem: str = "") -> None:
        if self._on_write is not None:
            kinds = Counter(update.kind for update in updates)
            inserted, modified, deleted = (kinds[kind] for kind in UpdateKind)
            self._on_write(SwitchWrite(self.name, inserted, modified, deleted, outcome, problem))

    def _desired_flows(self, held: State) -> State:
        found = self._found if self._keeps_found and self._found else ()
        # In the order of what is held, as the order of a set differs from process to process.
        kept = {
            key: entity for key, entity in held.items() if key in found and next_hop_of(entity) not in self._dead_ports
        }
        return kept | dict(self._flows)
