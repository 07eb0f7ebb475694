"""Visits of switches by a controller that does not run: what is read, what is written, and what is only noted."""

import asyncio
from collections.abc import Coroutine, Sequence
from dataclasses import dataclass, field
from typing import Any, Generic

from controller.errors import DaemonError
from controller.southbound.difference import difference
from controller.southbound.southbound import SouthboundError
from controller.southbound.states import RULES, EntryKey, EntryKind, EntryT, Meaning, State, Update
from controller.southbound.switch_access import Access, SwitchAwayError, SwitchRefusalError
from controller.southbound.write_outcomes import OnWrite, write_stages
from controller.southbound.written_switches import WrittenSwitches

_WITHDRAWN = (*RULES, EntryKind.LEVEL)


class SwitchHeldError(DaemonError):
    """A controller has switches that somebody else wants to write to; the message names them."""


@dataclass(slots=True)
class Visit:
    """What has come of visiting a switch.

    Attributes:
        name: The switch.
        address: Where it is.
        problem: Why it was not reached, or refused; empty where it was visited.
        is_held: Whether a controller has it.
        loads_program: Whether it runs another program, or none, and gets Trainyard's.
        updates: What is written to it, or would be.
    """

    name: str
    address: str
    problem: str = ""
    is_held: bool = False
    loads_program: bool = False
    updates: list[Update[Any]] = field(default_factory=list)


class Visitor(Generic[EntryT]):
    """Access to one switch that adds to its visit what is written; without ``may_write`` nothing is."""

    def __init__(self, access: Access[EntryT], visit: Visit, meaning: Meaning[EntryT]) -> None:
        self.visit = visit
        self.may_write = False
        self._access = access
        self._meaning = meaning

    async def read(self, expected: State[EntryT]) -> dict[EntryKey, EntryT]:
        """See Access. A switch that is to get its program first holds nothing."""
        if self.visit.loads_program and not self.may_write:
            return {}
        return await self._access.read(expected)

    async def write(self, updates: Sequence[Update[EntryT]]) -> None:
        """See Access."""
        if self.may_write:
            await self._access.write(updates)
        self.visit.updates += updates

    async def withdraw(self, on_write: OnWrite | None) -> None:
        """Delete all rules and levels; ``on_write`` is called after every request."""
        if self.visit.loads_program:
            self.visit.problem = "it does not run Trainyard's program, so that it holds no rules"
            return
        found = await self.read({})
        kept = {key: entry for key, entry in found.items() if key.kind not in _WITHDRAWN}
        stages = difference(found, kept, self._meaning.holds_same)
        await write_stages(self, stages, self.visit.name, on_write)

    async def to_its_end(self, work: Coroutine[Any, Any, object]) -> None:
        """Do work at the switch; what goes wrong there is the problem of its visit."""
        try:
            await work
        except (SouthboundError, SwitchRefusalError) as error:
            self.visit.problem = str(error)
        except SwitchAwayError as error:
            self.visit.problem = f"unreachable: {error}"


class VisitedSwitches(WrittenSwitches[EntryT]):
    """The part of a VisitingFabric that is the same for all protocols.

    Attributes:
        visits: The visits, by switch.
    """

    visits: dict[str, Visit]
    _visitors: dict[str, Visitor[EntryT]]
    """Those of the switches that are connected."""

    def require_free(self) -> None:
        """See VisitingFabric."""
        require_free(tuple(self.visits.values()))

    async def visit_all(self) -> None:
        """See VisitingFabric."""
        await asyncio.gather(
            *(visitor.to_its_end(self._writers[name].connect(visitor)) for name, visitor in self._visitors.items())
        )

    async def withdraw_all(self) -> None:
        """See VisitingFabric."""
        await asyncio.gather(
            *(visitor.to_its_end(visitor.withdraw(self._on_write)) for visitor in self._visitors.values())
        )


def require_free(visits: Sequence[Visit]) -> None:
    """Raise SwitchHeldError where a controller has any of the switches."""
    if held := [visit.name for visit in visits if visit.is_held]:
        raise SwitchHeldError(f"a controller has {', '.join(held)}; nothing was written")
