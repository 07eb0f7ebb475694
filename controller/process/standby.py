"""A controller that shares its database with others: it leads while none of them does, and otherwise stands by."""

import asyncio
from collections.abc import Callable

from controller.clock import Clock
from controller.config import ControllerConfig, LeadershipConfig
from controller.leadership.leader_gate import LeaderGate
from controller.leadership.leadership import Leadership, Lease, LeaseTable
from controller.process.active_controller import active_controller
from controller.process.core import ControllerCore
from controller.store.store import Store
from topologies.routing import Routing


class Standby:
    """Makes an active controller from the ``store`` when a term begins, and ends it with the term.

    ``gate`` answers calls at any time, ``controller`` is the active controller, None between terms, and ``announce`` is
    called with each term that begins.
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
        self.controller: ControllerCore | None = None
        self._leadership = Leadership(table, leadership.name, leadership.lease_s)
        self.gate = LeaderGate(lambda: self._leadership.known)
        self._config = config
        self._routing = routing
        self._clock = clock
        self._store = store
        self._announce = announce

    async def run(self) -> None:
        """Wait for the lease and lead, again and again, until cancelled. Raises the errors of the active controller."""
        await self._leadership.run(self._lead)

    async def _lead(self, lease: Lease) -> None:
        store = self._store.in_term(lease.term)
        async with active_controller(self._config, self._routing, self._clock, store, lease) as controller:
            with self.gate.serving(controller.handlers):
                self.controller = controller
                self._announce(lease.term)
                try:
                    await asyncio.Event().wait()
                finally:
                    self.controller = None
