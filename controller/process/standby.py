"""A controller that shares its database with others: it leads while none of them does, and otherwise stands by."""

import asyncio
from collections.abc import Callable, Sequence

from controller.clock import Clock
from controller.config import ControllerConfig, LeadershipConfig
from controller.leadership.leader_gate import LeaderGate
from controller.leadership.leadership import Leadership, Lease, LeaseTable
from controller.process.active_controller import ActiveController, active_controller
from controller.process.changing import ChangingController, compiled_policy, routing_of
from controller.process.core import ControllerCore
from controller.reload.errors import EndedMeanwhileError, ReloadError
from controller.reload.keys import KeyChanges
from controller.reload.words import fabric_lines
from controller.store.store import Store
from controller.web.presence import Presence
from topologies.fabric_match import FabricMatch
from topologies.routing import Routing

_STANDS_BY = "this controller stands by: it goes by this file once it leads"
_LEADS_NO_LONGER = "this controller leads no longer: it goes by this file once it leads again"
_KEPT = "this controller leads no longer, and goes by the file before once it leads again: reload again"


class Standby:
    """Makes an active controller from the ``store`` when a term begins, and ends it with the term.

    ``gate`` answers calls at any time, ``controller`` is the core of the active controller, None between terms, and
    ``announce`` is called with each term that begins, and with None when it ends. ``presence`` has that controller for
    HTTP.
    """

    def __init__(
        self,
        config: ControllerConfig,
        leadership: LeadershipConfig,
        routing: Routing,
        clock: Clock,
        store: Store,
        table: LeaseTable,
        announce: Callable[[int | None], None] = lambda _: None,
        presence: Presence | None = None,
    ) -> None:
        self._active: ActiveController | None = None
        self._begun = asyncio.Event()
        """Unset while a term has begun whose controller is not active yet."""
        self._begun.set()
        self._leadership = Leadership(table, leadership.name, leadership.lease_s)
        self.gate = LeaderGate(lambda: self._leadership.known)
        self._config = config
        self._routing = routing
        self._clock = clock
        self._store = store
        self._announce = announce
        self._presence = presence or Presence()
        self._presence.who_leads = lambda: self._leadership.known

    async def run(self) -> None:
        """Wait for the lease and lead, again and again, until cancelled. Raises the errors of the active controller."""
        await self._leadership.run(self._lead)

    @property
    def controller(self) -> ControllerCore | None:
        """The core of the active controller."""
        return None if self._active is None else self._active.core

    @property
    def config(self) -> ControllerConfig:
        """The configuration in force; between terms, that of the next one."""
        return self._config if self._active is None else self._active.config

    async def change(self, config: ControllerConfig, changes: KeyChanges) -> Sequence[str]:
        """See Changing. One that stands by touches nothing: the leader goes by its own file.

        Where the term ends meanwhile, the next one begins with this configuration if the controller has gone over to
        it, and otherwise with the one before.
        """
        routing = await routing_of(config)
        if self._active is None and self._begun.is_set():
            await compiled_policy(config, routing)
        while not self._begun.is_set():
            await self._begun.wait()
        words, before = _STANDS_BY, self._routing.fabric
        if (active := self._active) is not None:
            before = active.core.planner.routing.fabric
            try:
                return await ChangingController(active).change(config, changes)
            except EndedMeanwhileError as error:
                if self.config is not config:
                    raise ReloadError(_KEPT) from error
                words = _LEADS_NO_LONGER
            finally:
                self._agree(active)
        else:
            self._config, self._routing = config, routing
        return [*changes.at_once, *fabric_lines(FabricMatch(before, routing.fabric)), words]

    async def _lead(self, lease: Lease) -> None:
        store = self._store.in_term(lease.term)
        self._begun.clear()
        try:
            async with active_controller(
                self._config,
                self._routing,
                self._clock,
                store,
                lease,
                gate=self.gate,
                presence=self._presence,
            ) as active:
                self._active = active
                self._begun.set()
                self._announce(lease.term)
                try:
                    await asyncio.Event().wait()
                finally:
                    self._agree(active)
                    self._active = None
                    self._announce(None)
        finally:
            self._active = None
            self._begun.set()

    def _agree(self, active: ActiveController) -> None:
        """Have the next term begin with what the controller goes by, unless it is going back from that."""
        if active is self._active and not active.is_going_back:
            self._config, self._routing = active.config, active.core.planner.routing.whole
