"""Visit switches that speak OpenFlow once, for a controller that does not run.

Where switches connect to their controller, one that runs is known by the address that it has taken. Where the
controller connects to them, nobody tells who else does.
"""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from controller.access.bound_socket import bound_socket
from controller.config import ControllerConfig
from controller.errors import DaemonError
from controller.links.port_states import PortStateTable
from controller.southbound.openflow.access import OpenFlowAccess
from controller.southbound.openflow.states import MEANING, SwitchEntry
from controller.southbound.openflow.switches import OpenFlowSouthbound
from controller.southbound.visit import Visit, VisitedSwitches, Visitor
from controller.southbound.write_outcomes import OnWrite
from topologies.routing import Routing

_CONNECT_S = 10.0


class VisitingOpenFlow(VisitedSwitches[SwitchEntry], OpenFlowSouthbound):
    """A southbound whose switches are visited once, when a Plan is made; see VisitingFabric.

    ``generation_id`` is that by which it becomes the master of switches; None: it claims nothing.
    """

    def __init__(
        self, config: ControllerConfig, routing: Routing, generation_id: int | None, on_write: OnWrite | None = None
    ) -> None:
        super().__init__(config.openflow_addresses, routing, config.openflow, on_write)
        self.visits = {each.name: Visit(each.name, each.place) for each in config.openflow_addresses}
        self._generation_id = generation_id
        self._visitors: dict[str, Visitor[SwitchEntry]] = {}
        self._failures: dict[str, str] = {}

    @asynccontextmanager
    async def connected(self, ports: PortStateTable | None) -> AsyncIterator[None]:
        """Be connected to all switches that can be reached; see VisitingFabric."""
        addresses = self._addresses
        if held := self._listener_problem():
            passive = [each for each in addresses if each.openflow is not None and each.openflow.connect is None]
            for address in passive:
                self.visits[address.name].problem, self.visits[address.name].is_held = held, True
            addresses = tuple(each for each in addresses if each not in passive)
        self._connections.on_failed = self._failures.__setitem__
        async with self._connections.connected(ports, addresses):
            await self._connections.wait(_CONNECT_S)
            for address in addresses:
                self._begin(address.name)
            try:
                yield
            finally:
                self._worker.close()

    async def read_given(self) -> None:
        """Do nothing: base routing is always ours."""

    async def bid(self) -> None:
        """Become the master of all connected switches."""
        for name, visitor in list(self._visitors.items()):
            try:
                await self._require_safe(name)
                if self._generation_id is not None:
                    await self._connections.channels[name].claim(self._generation_id)
            except (DaemonError, KeyError) as error:
                visitor.visit.problem = f"unreachable: {error}"
                del self._visitors[name]
                continue
            visitor.may_write = True

    def _begin(self, name: str) -> None:
        """Begin a visit of a switch, where it is connected."""
        visit, channel = self.visits[name], self._connections.channels.get(name)
        if channel is None:
            visit.problem = f"unreachable: {self._failures.get(name, f'it has not connected within {_CONNECT_S:g} s')}"
            return
        access = OpenFlowAccess(channel, None, self._worker, lambda _reason: None)
        self._visitors[name] = Visitor(access, visit, MEANING)

    def _listener_problem(self) -> str:
        """Return why switches cannot connect; empty where they can, or none does by itself."""
        if all(each.openflow is not None and each.openflow.connect is not None for each in self._addresses):
            return ""
        try:
            with bound_socket(self._config.listen, "openflow"):
                return ""
        except OSError:
            return f"it connects to {self._config.listen}, where a controller listens already"
