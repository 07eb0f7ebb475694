"""The writers of all switches that speak one protocol: what is asked of them, all do at once."""

import asyncio
import logging
from collections import Counter
from collections.abc import Collection, Coroutine, Iterable, Mapping, Set
from typing import Any

from controller.events import BurstLog, EventKind
from controller.southbound.states import EntryT, State
from controller.southbound.switch_writer import SwitchWriter

_LOG = logging.getLogger(__name__)

_NO_NEXT_HOPS: Set[int] = frozenset()

_Outcome = asyncio.Task[Exception | None]


class SwitchWriters(dict[str, SwitchWriter[EntryT]]):
    """Writers by the names of their switches.

    What writes goes on to its end at every switch, then raises the first error: SouthboundError where one refuses.

    Args:
        patience_s: How long rules, and all that a Plan asks for, wait for slow switches. Then they go on at these
            apart, and nothing waits for a switch that is late already. None: until all switches have answered.
    """

    def __init__(self, patience_s: float | None = None) -> None:
        super().__init__()
        self._patience_s = patience_s
        self._late: Counter[str] = Counter()
        """How much is still to be done at switches that were not waited for."""
        self._apart: set[_Outcome] = set()
        self._log = BurstLog(_LOG, logging.WARNING)

    async def set_rules(self, states: Mapping[str, State[EntryT]]) -> None:
        """Give every switch its rules."""
        await self.promptly((name, writer.set_rules(states[name])) for name, writer in self.items())

    async def reroute(
        self,
        states: Mapping[str, State[EntryT]],
        bases: Mapping[str, State[EntryT]],
        dead_next_hops: Mapping[str, Set[int]],
    ) -> None:
        """Give every switch its rules, then its base entries; see SwitchWriter."""
        await self.promptly(
            (name, writer.reroute(states[name], bases[name], dead_next_hops.get(name, _NO_NEXT_HOPS)))
            for name, writer in self.items()
        )

    async def keep_base(self) -> None:
        """Take back what was tried."""
        await all_of(writer.keep_base() for writer in self.values())

    async def forget_found(self) -> None:
        """Delete what earlier controllers have left."""
        await self.promptly((name, writer.forget_found()) for name, writer in self.items())

    async def release(self) -> None:
        """Delete all rules and levels."""
        await self.promptly((name, writer.release()) for name, writer in self.items())

    async def serve_levels(self) -> None:
        """Have levels served again where they were released."""
        await self.promptly((name, writer.serve_levels()) for name, writer in self.items() if not writer.serves_levels)

    async def caught_up(self, down: Collection[str] = ()) -> None:
        """Wait until every switch has acknowledged its entries, and those in ``down`` are disconnected."""
        for name, writer in list(self.items()):
            await (writer.away() if name in down else writer.caught_up())

    async def promptly(self, works: Iterable[tuple[str, Coroutine[Any, Any, None]]]) -> None:
        """Do work at switches, each with its name; leave those that take long to themselves."""
        if self._patience_s is None:
            await all_of(work for _, work in works)
            return
        tasks: dict[str, _Outcome] = {}
        try:
            for name, work in works:
                tasks[name] = asyncio.create_task(_outcome(work))
                await asyncio.sleep(0)
            if awaited := [task for name, task in tasks.items() if not self._late[name]]:
                await asyncio.wait(awaited, timeout=self._patience_s)
        except asyncio.CancelledError:
            for task in tasks.values():
                task.cancel()
            await asyncio.gather(*tasks.values(), return_exceptions=True)
            raise
        for name, task in tasks.items():
            if not task.done():
                self._leave(name, task)
        for task in tasks.values():
            if task.done() and (error := task.result()):
                raise error

    async def stop(self) -> None:
        """End what goes on apart."""
        for task in self._apart:
            task.cancel()
        await asyncio.gather(*self._apart, return_exceptions=True)

    def _leave(self, name: str, task: _Outcome) -> None:
        """Let a switch go on by itself."""
        if not self._late[name]:
            _LOG.warning("switch %s is slow to answer; what is written to the others does not wait for it", name)
        self._late[name] += 1
        self._apart.add(task)
        task.add_done_callback(lambda done: self._end(name, done))

    def _end(self, name: str, task: _Outcome) -> None:
        self._apart.discard(task)
        self._late[name] -= 1
        if not task.cancelled() and (error := task.result()):
            self._log.tell(EventKind.SWITCH_REFUSES, "%s", error, switch=name)


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
