"""A controller that takes turns with others on one database: it leads while none of them does, and else stands by."""

import asyncio
from collections.abc import Callable

from controller.clock import Clock
from controller.config import ControllerConfig, LeadershipConfig
from controller.leadership.leader_gate import Reception
from controller.leadership.leadership import Leadership, Lease, LeaseTable
from controller.process.active_controller import in_office
from controller.process.core import Controller
from controller.store.store import Store
from topologies.routing import Routing


class Standby:
    """Everything that a controller in office has is made when its term begins, from the ``store``, and ends with it.

    ``reception`` answers calls in between, ``controller`` is the one in office, and ``announce`` is told each term.
    """

    def __init__(
        self,
        config: ControllerConfig,
        leadership: LeadershipConfig,
        routing: Routing,
        clock: Clock,
        store: Store,
        table: LeaseTable,
        announce: Callable[[int], None] = lambda _: None,
    ) -> None:
        self.controller: Controller | None = None
        self._leadership = Leadership(table, leadership.name, leadership.lease_s)
        self.reception = Reception(lambda: self._leadership.known)
        self._config = config
        self._routing = routing
        self._clock = clock
        self._store = store
        self._announce = announce

    async def run(self) -> None:
        """Wait for the lease, lead, and again; until cancelled. Raises what goes wrong in office."""
        await self._leadership.run(self._lead)

    async def _lead(self, lease: Lease) -> None:
        store = self._store.in_term(lease.term)
        async with in_office(self._config, self._routing, self._clock, store, lease) as controller:
            with self.reception.seated(controller.handlers):
                self.controller = controller
                self._announce(lease.term)
                try:
                    await asyncio.Event().wait()
                finally:
                    self.controller = None
