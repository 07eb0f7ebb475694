"""The base tables of all switches where somebody else fills them: what they mean, and what is wrong with them."""

import asyncio
import logging
from collections.abc import Callable, Mapping
from functools import partial
from itertools import islice

from controller.background import Worker
from controller.southbound.p4runtime.given_routes import InterpretedTables, interpret
from controller.southbound.p4runtime.states import State
from topologies.fabric import Fabric
from topologies.given_routing import GivenRouting

_LOG = logging.getLogger(__name__)

_GATHER_S = 0.5
"""A client that reroutes changes many switches one after the other."""
_MAX_LINES = 20


class GivenTables:
    """The base tables of every switch as they were last read; a switch that was never read routes nothing.

    ``follow`` is called with the routing of the fabric whenever it has changed.
    """

    def __init__(self, fabric: Fabric, worker: Worker) -> None:
        self.follow: Callable[[GivenRouting], None] = _nothing
        self._fabric = fabric
        self._worker = worker
        self._tables: dict[str, InterpretedTables] = {}
        self._changed = asyncio.Event()
        self._told: frozenset[str] = frozenset()

    async def take(self, switch: str, base: State) -> None:
        """Take what was read of a switch."""
        tables = await self._worker.run(partial(interpret, switch, base, self._fabric), len(base))
        before = self._tables.get(switch)
        if tables == before:
            return
        self._tables[switch] = tables
        self._changed.set()
        self.follow(self.routing())

    def next_hops(self, switch: str) -> Mapping[int, int]:
        """Return the next hops of a switch by the link that they leave by."""
        return self._tables[switch].next_hops if switch in self._tables else {}

    def problem(self, switch: str) -> str:
        """Return what makes no sense in the tables of a switch; empty where all does."""
        tables = self._tables.get(switch)
        return f"base routing of others: {'; '.join(tables.problems)}" if tables and tables.problems else ""

    def routing(self) -> GivenRouting:
        """Return the routing of the whole fabric."""
        return GivenRouting(self._fabric, {switch: tables.routes for switch, tables in self._tables.items()})

    async def tell_problems(self) -> None:
        """Log what cannot be used of the routing whenever it has changed, until cancelled."""
        while True:
            await self._changed.wait()
            await asyncio.sleep(_GATHER_S)
            self._changed.clear()
            problems = await asyncio.to_thread(_problems, dict(self._tables), self.routing())
            for problem in sorted(problems - self._told):
                _LOG.warning("base routing of others: %s", problem)
            for problem in sorted(self._told - problems):
                _LOG.warning("base routing of others: no longer: %s", problem)
            self._told = problems


def _problems(tables: Mapping[str, InterpretedTables], routing: GivenRouting) -> frozenset[str]:
    own = (f"switch {switch}: {problem}" for switch, each in tables.items() for problem in each.problems)
    return frozenset((*islice(own, _MAX_LINES), *islice(routing.problems(), _MAX_LINES)))


def _nothing(_: GivenRouting) -> None:
    pass
