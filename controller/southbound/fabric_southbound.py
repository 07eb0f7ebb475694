"""Everything that a controller needs of the switches of its fabric, whatever protocols they speak."""

from collections.abc import Collection, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from types import TracebackType
from typing import Protocol, Self

from controller.links.port_states import PortStateTable
from controller.rules.flow_rules import RulesBySwitch
from controller.southbound.southbound import PacketPorts, SwitchStatus
from controller.switch_addresses import SwitchAddress
from topologies.addressing import Address, MacAddress
from topologies.routing import Routing


class FabricSouthbound(Protocol):
    """A Southbound and a DiscoveringSouthbound with counters, which can go over to another fabric.

    It writes while its context is entered, inside that of ``hearing_ports``.
    """

    @property
    def packets(self) -> PacketPorts:
        """The frames from and to the ports of switches."""

    def hearing_ports(self, ports: PortStateTable | None) -> AbstractAsyncContextManager[None]:
        """Put the states of ports into a table while the context lasts, where the protocol itself tells them."""

    async def __aenter__(self) -> Self:
        """Begin to write to switches."""

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        """Write no longer."""

    async def write(self, rules: RulesBySwitch) -> None:
        """See Southbound."""

    async def reroute(self, rules: RulesBySwitch, routing: Routing) -> None:
        """See Southbound."""

    async def forget_found(self) -> None:
        """See Southbound."""

    async def release(self) -> None:
        """See Southbound."""

    async def serve_levels(self) -> None:
        """See Southbound."""

    async def caught_up(self, down: Collection[str] = ()) -> None:
        """See Southbound."""

    def statuses(self) -> tuple[SwitchStatus, ...]:
        """See Southbound."""

    async def read_back(self) -> None:
        """Read all switches back now, and repair what somebody else has changed."""

    async def job_bytes(self, switches: Collection[str]) -> Mapping[tuple[int, str], int] | None:
        """See Counters."""

    async def level_bytes(self, level: int) -> Mapping[int, int] | None:
        """See Counters."""

    async def link_bytes(self, links: Collection[int]) -> Mapping[int, int]:
        """See LinkCounters."""

    def neighbours(self) -> Mapping[Address, MacAddress]:
        """See DiscoveringSouthbound."""

    async def set_neighbours(self, macs: Mapping[Address, MacAddress]) -> None:
        """See DiscoveringSouthbound."""

    async def try_fabric(self, addresses: Sequence[SwitchAddress], routing: Routing) -> None:
        """Give the switches that stay what another fabric needs besides, as far as no packet takes another way by it.

        ``keep_fabric`` takes it back. After it, ``use_fabric`` and ``rebase`` go on from there.

        Raises:
            SouthboundError: A switch refuses.
        """

    async def keep_fabric(self) -> None:
        """Take back what ``try_fabric`` has written. Raises SouthboundError where a switch refuses."""

    async def use_fabric(self, addresses: Sequence[SwitchAddress], routing: Routing) -> None:
        """Go over to another fabric, without writing anything: ``rebase`` is to follow before anything else is written.

        Switches that stay keep their connections and their rules. Those that are new are connected.
        """

    async def rebase(self, routing: Routing) -> None:
        """Have all switches route what no rule steers as ``routing`` says, after ``use_fabric``; rules stay.

        Only entries are written that differ, and nothing to switches that the fabric does not have any longer.

        Raises:
            SouthboundError: A switch refuses.
        """
