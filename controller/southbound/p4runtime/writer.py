"""Keep one switch in the desired state, through refusals and restarts."""

import asyncio
from collections import Counter
from collections.abc import Callable, Coroutine, Iterable, Sequence, Set
from dataclasses import dataclass
from enum import StrEnum
from functools import partial
from typing import Any, Protocol

from controller.background import Worker
from controller.errors import DaemonError
from controller.southbound.p4runtime.difference import Stage, State, Update, UpdateKind, difference
from controller.southbound.p4runtime.drift import Drift, drift_between, may_have_drifted
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

    Both methods raise SwitchAwayError and SwitchRefusalError.
    """

    async def read(self, expected: State) -> dict[EntityKey, Entity]:
        """Read the controller's own entities; those that do the same as an expected one are that very object."""

    async def write(self, updates: Sequence[Update]) -> None:
        """Write updates in one request."""


class WriteOutcome(StrEnum):
    """The outcome of a write request to a switch, or that its entries were found changed by somebody else."""

    ACKNOWLEDGED = "acknowledged"
    REFUSED = "refused"
    UNANSWERED = "unanswered"
    DRIFTED = "drifted"


@dataclass(frozen=True, slots=True)
class SwitchWrite:
    """A write request to a switch: the number of updates of each kind, the outcome, and the reason of a refusal.

    Where the switch has drifted, the numbers are those of the updates that repair it.
    """

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
    empty where nothing is; ``num_drifted`` counts the entries that others had changed, and that were repaired.
    ``on_write`` is called after every request. ``worker`` compares large states.
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
        self.num_drifted = 0
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

    async def read_back(self) -> Drift | None:
        """Read the switch back and repair what somebody else has changed; return what that was, None if nothing.

        It writes nothing while the switch is away, and what was written during the reading counts as no change. A
        switch that refused its entries is given them again.

        Raises:
            SouthboundError: The switch refuses.
        """
        async with self._lock:
            access = self._access
            if access is not None and self._held is None:
                await self._catch_up()
            before = self._expected()
        if access is None or before is None:
            return None
        # Without the lock, so that rules need not wait; any difference is confirmed with it.
        try:
            found = await access.read(before)
        except SwitchAwayError:
            self._drop(access)
            return None
        except SwitchRefusalError as refusal:
            if self._access is not access:
                return None
            raise SouthboundError(f"switch {self.name!r}: {refusal}") from refusal
        async with self._lock:
            now = self._expected()
        if now is None or not await self._worker.run(partial(may_have_drifted, found, before, now), len(found)):
            return None
        async with self._lock:
            now = self._expected()
            return None if self._access is not access or now is None else await self._repair(access, now)

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

    def _expected(self) -> State | None:
        """Return all that the switch is known to hold, None where that is not known."""
        return None if self._held is None else {**self._held_base, **self._held}

    async def _repair(self, access: Access, expected: State) -> Drift | None:
        """Make the switch hold again what it is expected to; return what it did not."""
        drift: list[Drift] = []

        async def write_repairs() -> None:
            held, self._held = self._held, None
            found = await access.read(expected)
            drifted = await self._worker.run(partial(drift_between, found, expected), len(expected))
            if drifted is not None:
                drift.append(drifted)
                self._caught_up.clear()
                self._report_drift(drifted)
                stages = await self._worker.run(partial(difference, found, expected), len(expected))
                await self._write_stages(access, stages)
                self.num_drifted += drifted.total
            self._held = held

        await self._attempt(access, write_repairs())
        return drift[0] if drift else None

    async def _catch_up(self) -> None:
        access = self._access
        if access is not None:
            await self._attempt(access, self._write_difference(access))

    async def _attempt(self, access: Access, work: Coroutine[Any, Any, None]) -> None:
        """Do work that leaves the switch caught up, unless it fails. Raises SouthboundError if the switch refuses."""
        try:
            await work
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
            found = await access.read({**base, **self._flows})
            flows, stages = await self._worker.run(partial(self._from_found, found), len(found) + len(base))
        else:
            flows, stages = await self._worker.run(partial(self._from_held, held), len(held) + len(self._flows))
        await self._write_stages(access, stages)
        self._held, self._held_base = flows, base

    async def _write_stages(self, access: Access, stages: Iterable[Stage]) -> None:
        for stage in stages:
            for first in range(0, len(stage), MAX_UPDATES_PER_WRITE):
                await self._write(access, stage[first : first + MAX_UPDATES_PER_WRITE])

    def _from_found(self, found: State) -> tuple[State, tuple[Stage, ...]]:
        """The rules that the switch is to have, and the updates to them from what was read."""
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

    def _report_drift(self, drift: Drift) -> None:
        if self._on_write is not None:
            outcome, counts = WriteOutcome.DRIFTED, (drift.missing, drift.changed, drift.foreign)
            self._on_write(SwitchWrite(self.name, *counts, outcome, str(drift)))

    def _desired_flows(self, held: State) -> State:
        found = self._found if self._keeps_found and self._found else ()
        # In the order of what is held, as the order of a set differs from process to process.
        kept = {
            key: entity for key, entity in held.items() if key in found and next_hop_of(entity) not in self._dead_ports
        }
        return kept | dict(self._flows)
