"""Keep one switch in the desired state, through refusals and restarts, whatever protocol it speaks."""

import asyncio
from collections.abc import Set
from functools import partial
from itertools import chain
from types import MappingProxyType
from typing import Generic

from controller.background import Worker
from controller.southbound.connection import Connection, OnChange, nothing_waits
from controller.southbound.desired_state import DesiredState
from controller.southbound.difference import difference
from controller.southbound.drift import Drift, drift_between, may_have_drifted
from controller.southbound.southbound import SwitchCondition
from controller.southbound.states import DECISIONS, TRIED, EntryT, Meaning, State
from controller.southbound.switch_access import Access, SwitchAwayError, SwitchRefusalError
from controller.southbound.write_outcomes import OnWrite, report_drift, write_stages


class SwitchWriter(Generic[EntryT]):
    """One switch: its desired entries, those it is known to hold, and the writes that make up the difference.

    Rules that the switch held at the first connection stay until ``forget_found``; see DesiredState, also for
    ``unknown_neighbours``. ``num_drifted`` counts the entries that others had changed, and that were repaired.
    ``on_write`` is called after every request. ``worker`` compares large states. ``meaning`` is that of the entries.
    All methods that write raise SouthboundError where the switch refuses.
    """

    def __init__(
        self,
        name: str,
        meaning: Meaning[EntryT],
        base: State[EntryT],
        on_write: OnWrite | None = None,
        worker: Worker | None = None,
        unknown_neighbours: State[EntryT] = MappingProxyType({}),
        on_change: OnChange = nothing_waits,
    ) -> None:
        self.name = name
        self._meaning = meaning
        self._worker = worker or Worker(name)
        self._on_write = on_write
        self._desired = DesiredState(meaning, base, unknown_neighbours)
        self._held: State[EntryT] | None = None
        self._held_base = base
        self._connection: Connection[EntryT] = Connection(name, on_change)
        self.num_drifted = 0
        self._num_rules = 0
        self._num_asked = 0
        """How often rules were asked for: only the newest ones are written where several wait."""
        self._lock = asyncio.Lock()

    @property
    def neighbours(self) -> State[EntryT]:
        """The entries that stand in the place of base entries because a neighbour is known."""
        return self._desired.neighbours

    @property
    def serves_levels(self) -> bool:
        """Whether marked packets have their levels; they do not after ``release``."""
        return self._desired.serves_levels

    @property
    def problem(self) -> str:
        """What is wrong with the switch; empty where nothing is."""
        return self._connection.problem

    @property
    def num_rules(self) -> int | None:
        """Rules that the switch is known to hold, None while it is away or being written to."""
        return None if self._connection.access is None or self._held is None else self._num_rules

    @property
    def condition(self) -> SwitchCondition:
        """The state of the switch as the controller sees it."""
        return self._connection.condition

    async def set_rules(self, flows: State[EntryT]) -> None:
        """Give the switch the base entries and these rules; return when acknowledged, at once if the switch is away.

        Where newer ones wait already, those are written in their place.
        """
        number = self._next_number()
        async with self._lock:
            if number != self._num_asked or (self._connection.is_caught_up and flows == self._desired.flows):
                return
            self._desired.flows = flows
            await self._catch_up()

    async def reroute(self, flows: State[EntryT], base: State[EntryT], dead_next_hops: Set[int]) -> None:
        """Do the same with new base entries, which are written after the rules.

        Rules found at the first connection that steer to a dead next hop are deleted.
        """
        number = self._next_number()
        async with self._lock:
            self._desired.flows, self._desired.dead_next_hops = flows, dead_next_hops
            self._desired.set_base(base)
            self._connection.fall_behind()
            if number == self._num_asked:
                await self._catch_up()

    async def rebase(
        self,
        base: State[EntryT],
        neighbours: State[EntryT],
        unknown_neighbours: State[EntryT],
        dead_next_hops: Set[int],
    ) -> None:
        """Go on with other base entries and the same rules: the switch has other cables.

        ``neighbours`` stand in the place of base entries. What else the switch holds stays as it is.
        """
        async with self._lock:
            self._desired.rebase(base, neighbours, unknown_neighbours)
            self._desired.dead_next_hops = dead_next_hops
            await self._catch_up()

    async def try_base(self, base: State[EntryT]) -> None:
        """Write what the switch does not hold of these base entries, ahead of ``rebase``; ``keep_base`` takes it back.

        No route leads to it yet. Nothing is written to a switch that is away, or that refuses its entries already.
        After a refusal the switch holds what it held before.
        """
        async with self._lock:
            access, held, expected = self._connection.access, self._held, self._expected()
            if access is None or expected is None:
                return
            new = {key: entry for key, entry in base.items() if key.kind in TRIED and key not in expected}
            if not new:
                return
            self._held, self._held_base = None, {**self._held_base, **new}
            try:
                await self._require_room(base, held or {})
                stages = difference({}, new, self._meaning.holds_same)
                await write_stages(access, stages, self.name, self._on_write)
            except SwitchAwayError:
                self._connection.drop(access)
            except SwitchRefusalError as refusal:
                await self._catch_up()
                raise self._connection.refusal(refusal) from refusal
            else:
                self._held = held

    async def keep_base(self) -> None:
        """Take back what ``try_base`` has written."""
        async with self._lock:
            if self._held is not None and self._held_base.keys() != self._desired.base.keys():
                await self._catch_up()

    async def set_neighbours(self, neighbours: State[EntryT], plain: State[EntryT]) -> None:
        """Have these base entries stand in the place of others, now and after rerouting.

        Args:
            neighbours: The entries.
            plain: All base entries that such entries may replace; those without a replacement come back.
        """
        async with self._lock:
            if self._connection.is_caught_up and neighbours == self._desired.neighbours:
                return
            self._desired.set_neighbours(neighbours, plain)
            await self._catch_up()

    async def forget_found(self) -> None:
        """Delete what was found at the first connection and not written since."""
        async with self._lock:
            self._desired.keeps_found = False
            await self._catch_up()

    async def release(self) -> None:
        """Delete all rules, and the levels that marked packets have; base routing stays."""
        async with self._lock:
            self._desired.flows, self._desired.keeps_found, self._desired.serves_levels = {}, False, False
            await self._catch_up()

    async def serve_levels(self) -> None:
        """Have marked packets served by their levels again after ``release``."""
        async with self._lock:
            self._desired.serves_levels = True
            await self._catch_up()

    async def connect(self, access: Access[EntryT]) -> None:
        """Handle a new connection: read the switch back and write what differs."""
        async with self._lock:
            self._connection.open(access)
            self._held = None
            await self._connection.attempt(access, self._write_difference(access))

    async def read_back(self) -> Drift | None:
        """Read the switch back and repair what somebody else has changed; return what that was, None if nothing.

        It writes nothing while the switch is away, and what was written during the reading counts as no change. A
        switch that refused its entries is given them again.
        """
        connection = self._connection
        async with self._lock:
            access = connection.access
            await self._try_again()
            before = self._expected()
        if access is None or before is None:
            return None
        # Without the lock, so that rules need not wait; any difference is confirmed with it.
        try:
            found = await access.read(before)
        except SwitchAwayError:
            connection.drop(access)
            return None
        except SwitchRefusalError as refusal:
            if connection.access is not access:
                return None
            raise connection.refusal(refusal) from refusal
        async with self._lock:
            now = self._expected()
        if now is None or not await self._worker.run(partial(may_have_drifted, found, before, now), len(found)):
            return None
        async with self._lock:
            now = self._expected()
            return None if connection.access is not access or now is None else await self._repair(access, now)

    async def try_again(self) -> None:
        """Write what the switch has refused, or has left unanswered, as far as it lacks it."""
        async with self._lock:
            await self._try_again()

    def disconnect(self) -> None:
        """Handle the loss of the connection."""
        self._connection.close()

    def mark_lost(self, problem: str) -> None:
        """Handle the loss of the switch to another controller; it is left alone until it reports otherwise."""
        self._connection.lose(problem)

    async def caught_up(self) -> None:
        """Wait until the switch is connected and has acknowledged all its desired entries.

        Raises:
            SouthboundError: Another controller has taken over the switch.
        """
        await self._connection.caught_up()

    async def away(self) -> None:
        """Wait until the switch is not connected."""
        await self._connection.away()

    async def _try_again(self) -> None:
        if (access := self._connection.access) is not None and self._held is None:
            await self._connection.attempt(access, self._write_difference(access))

    def _next_number(self) -> int:
        self._num_asked += 1
        return self._num_asked

    def _expected(self) -> State[EntryT] | None:
        """Return all that the switch is known to hold, None where that is not known."""
        return None if self._held is None else {**self._held_base, **self._held}

    async def _repair(self, access: Access[EntryT], expected: State[EntryT]) -> Drift | None:
        """Make the switch hold again what it is expected to; return what it did not."""
        drift: list[Drift] = []
        holds_same = self._meaning.holds_same

        async def write_repairs() -> None:
            held, self._held = self._held, None
            found = await access.read(expected)
            drifted = await self._worker.run(partial(drift_between, found, expected, holds_same), len(expected))
            if drifted is not None:
                drift.append(drifted)
                self._connection.fall_behind()
                report_drift(self.name, drifted, self._on_write)
                stages = await self._worker.run(partial(difference, found, expected, holds_same), len(expected))
                await write_stages(access, stages, self.name, self._on_write)
                self.num_drifted += drifted.total
            self._held = held

        await self._connection.attempt(access, write_repairs())
        return drift[0] if drift else None

    async def _catch_up(self) -> None:
        """Write what the switch is to hold from now on; does nothing while it is away."""
        self._connection.fall_behind()
        if (access := self._connection.access) is not None:
            await self._connection.attempt(access, self._write_difference(access))

    async def _require_room(self, base: State[EntryT], flows: State[EntryT]) -> None:
        """Raise SwitchRefusalError where the switch has no room for so much; nothing is written of it then."""
        overflow = await self._worker.run(partial(self._meaning.overflow, chain(base, flows)), len(base) + len(flows))
        if overflow:
            raise SwitchRefusalError(overflow)

    async def _write_difference(self, access: Access[EntryT]) -> None:
        desired = self._desired
        # Unknown until all is acknowledged, so that the switch is read again after a failure.
        held, self._held = self._held, None
        base = desired.base
        if held is None:
            found = await access.read({**base, **desired.flows})
            flows, stages = await self._worker.run(partial(desired.from_found, found), len(found) + len(base))
        else:
            from_held = partial(desired.from_held, held, self._held_base)
            flows, stages = await self._worker.run(from_held, len(held) + len(desired.flows))
        if stages:
            await self._require_room(base, flows)
        await write_stages(access, stages, self.name, self._on_write)
        self._held, self._held_base = flows, desired.base
        self._num_rules = sum(key.kind in DECISIONS for key in flows)
