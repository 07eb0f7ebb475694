"""Visit all switches of a fabric once, whatever protocols they speak."""

from collections.abc import AsyncIterator, Mapping
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import Protocol

from controller.config import ControllerConfig
from controller.links.port_states import PortStateTable
from controller.southbound.fabric_southbound import FabricSouthbound
from controller.southbound.mixed import MixedSouthbound
from controller.southbound.openflow.visiting import VisitingOpenFlow
from controller.southbound.p4runtime.visiting import VisitingSouthbound
from controller.southbound.visit import Visit, require_free
from controller.southbound.write_outcomes import OnWrite
from topologies.routing import Routing


class VisitingFabric(FabricSouthbound, Protocol):
    """A southbound whose switches stay unconnected while a Plan is made, and are visited once then.

    It writes only after ``bid``. ``visits`` has what has come of it.
    """

    @property
    def visits(self) -> Mapping[str, Visit]:
        """The visits, by switch."""

    def connected(self, ports: PortStateTable | None) -> AbstractAsyncContextManager[None]:
        """Be connected to all switches that can be reached, as the controller of none.

        ``ports`` has the states of the ports of switches whose protocol tells them.
        """

    def require_free(self) -> None:
        """Raise SwitchHeldError where a controller has any of the switches."""

    async def read_given(self) -> None:
        """Read base routing of others, where it is theirs."""

    async def bid(self) -> None:
        """Become the controller of all connected switches."""

    async def visit_all(self) -> None:
        """Write to each switch what it lacks, or note it."""

    async def withdraw_all(self) -> None:
        """Delete all rules and levels of each switch, or note it; everything else stays as it is."""


class VisitingMixed(MixedSouthbound):
    """A VisitingFabric of switches of which some speak P4Runtime, and some OpenFlow."""

    def __init__(self, p4runtime: VisitingFabric, openflow: VisitingFabric) -> None:
        super().__init__(p4runtime, openflow)
        self._visiting = (p4runtime, openflow)

    @property
    def visits(self) -> Mapping[str, Visit]:
        """See VisitingFabric."""
        return {name: visit for each in self._visiting for name, visit in each.visits.items()}

    @asynccontextmanager
    async def connected(self, ports: PortStateTable | None) -> AsyncIterator[None]:
        """See VisitingFabric."""
        one, other = self._visiting
        async with one.connected(ports), other.connected(ports):
            yield

    def require_free(self) -> None:
        """See VisitingFabric."""
        require_free(tuple(self.visits.values()))

    async def read_given(self) -> None:
        """See VisitingFabric."""
        for each in self._visiting:
            await each.read_given()

    async def bid(self) -> None:
        """See VisitingFabric."""
        for each in self._visiting:
            await each.bid()

    async def visit_all(self) -> None:
        """See VisitingFabric."""
        for each in self._visiting:
            await each.visit_all()

    async def withdraw_all(self) -> None:
        """See VisitingFabric."""
        for each in self._visiting:
            await each.withdraw_all()


def visiting_southbound(
    config: ControllerConfig, routing: Routing, election_id: int, term: int | None, on_write: OnWrite | None
) -> VisitingFabric:
    """Return the southbound that visits the switches of a configuration.

    Args:
        config: The configuration.
        routing: The routing of its fabric.
        election_id: That by which it takes switches over.
        term: The term in which it writes; None: there are no terms.
        on_write: Called after every request.
    """
    if not config.openflow_addresses:
        return VisitingSouthbound(config, routing, election_id, on_write)
    openflow = VisitingOpenFlow(config, routing, None if term is None else election_id, on_write)
    if not config.p4runtime_addresses:
        return openflow
    return VisitingMixed(VisitingSouthbound(config, routing, election_id, on_write), openflow)
