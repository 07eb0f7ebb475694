"""The writers of all switches that speak one protocol: what is asked of them, all do at once."""

import asyncio
from collections.abc import Collection, Coroutine, Iterable, Mapping, Set
from typing import Any

from controller.southbound.states import EntryT, State
from controller.southbound.switch_writer import SwitchWriter

_NO_NEXT_HOPS: Set[int] = frozenset()


class SwitchWriters(dict[str, SwitchWriter[EntryT]]):
    """Writers by the names of their switches.

    What writes goes on to its end at every switch, then raises the first error: SouthboundError where one refuses.
    """

    async def set_rules(self, states: Mapping[str, State[EntryT]]) -> None:
        """Give every switch its rules."""
        await all_of(writer.set_rules(states[name]) for name, writer in self.items())

    async def reroute(
        self,
        states: Mapping[str, State[EntryT]],
        bases: Mapping[str, State[EntryT]],
        dead_next_hops: Mapping[str, Set[int]],
    ) -> None:
        """Give every switch its rules, then its base entries; see SwitchWriter."""
        await all_of(
            writer.reroute(states[name], bases[name], dead_next_hops.get(name, _NO_NEXT_HOPS))
            for name, writer in self.items()
        )

    async def keep_base(self) -> None:
        """Take back what was tried."""
        await all_of(writer.keep_base() for writer in self.values())

    async def forget_found(self) -> None:
        """Delete what earlier controllers have left."""
        await all_of(writer.forget_found() for writer in self.values())

    async def release(self) -> None:
        """Delete all rules and levels."""
        await all_of(writer.release() for writer in self.values())

    async def serve_levels(self) -> None:
        """Have levels served again where they were released."""
        await all_of(writer.serve_levels() for writer in self.values() if not writer.serves_levels)

    async def caught_up(self, down: Collection[str] = ()) -> None:
        """Wait until every switch has acknowledged its entries, and those in ``down`` are disconnected."""
        for name, writer in list(self.items()):
            await (writer.away() if name in down else writer.caught_up())


async def all_of(works: Iterable[Coroutine[Any, Any, None]]) -> None:
    """Run everything to its end, then raise the first error.

    Each coroutine starts, and sends its request, before the next one is created.
    """
    async with asyncio.TaskGroup() as tasks:
        outcomes = []
        for work in works:
            outcomes.append(tasks.create_task(_outcome(work)))
            await asyncio.sleep(0)
    for outcome in outcomes:
        if error := outcome.result():
            raise error


async def _outcome(work: Coroutine[Any, Any, None]) -> Exception | None:
    try:
        await work
    except Exception as error:
        return error
    return None
