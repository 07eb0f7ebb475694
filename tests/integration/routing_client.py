"""Another client of the switches, which routes by shortest paths with its own numbers; and a fabric that both share."""

import asyncio
from collections.abc import AsyncIterator, Container, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass

import finsy as fy
from finsy import P4ActionProfileGroup, P4ActionProfileMember, P4Member, P4TableAction, P4TableEntry, P4TableMatch

from controller.switch_addresses import SwitchAddress
from emulator.compiler.program import compile_program
from emulator.fabric import EmulatedFabric
from emulator.host_options import HostOptions
from emulator.p4runtime.pipeline import compiled_pipeline
from emulator.p4runtime.server import serve
from emulator.p4runtime.service import P4RuntimeService
from p4src import P4INFO, PROGRAM
from topologies.fabric import Fabric
from topologies.routing import Routing

FIRST_NEXT_HOP = 1000


@dataclass
class RoutingClient:
    """A primary in the default role; ``switches`` are its connections.

    It numbers next hops from 1000 on, in the order of links, and its groups have their members the other way round.
    """

    routing: Routing
    switches: Mapping[str, fy.Switch]
    first_next_hop: int = FIRST_NEXT_HOP

    def next_hop(self, link: int) -> int:
        """Its number of a next hop."""
        source = self.routing.fabric.links[link].source
        leaving = [each.index for each in self.routing.fabric.links_from[source]]
        return self.first_next_hop + leaving.index(link)

    def members(self, links: tuple[int, ...]) -> tuple[int, ...]:
        """The members of its group for a route, in its order."""
        return tuple(reversed(links))

    async def renumber(self, first_next_hop: int) -> None:
        """Give all next hops new numbers, the new before the old go; members keep theirs."""
        for name, switch in self.switches.items():
            leaving = self.routing.fabric.links_from[name]
            for number, link in enumerate(leaving):
                await switch.write([self._forward(first_next_hop + number, link.source_port)])
                member = P4ActionProfileMember(
                    "ecmp",
                    member_id=7 + self.next_hop(link.index),
                    action=P4TableAction("set_next_hop", next_hop=first_next_hop + number),
                )
                await switch.write([~member])
            old = [self.next_hop(link.index) for link in leaving]
            await switch.write([-P4TableEntry("next_hop", match=P4TableMatch(next_hop=number)) for number in old])

    async def serve_levels(self, switch: str) -> None:
        """Write what an ordinary switch does with the DSCP of hosts: class n has queue n."""
        for level in range(1, 8):
            action = P4TableAction("set_level", level=level)
            await self.switches[switch].write(
                [+P4TableEntry("level", match=P4TableMatch(dscp=8 * level), action=action)]
            )

    async def route(self, switch: str) -> None:
        """Write everything that a switch needs to route."""
        fabric = self.routing.fabric
        leaving = fabric.links_from[switch]
        multiplier = self.routing.hash_multipliers[switch]
        updates: list[P4ActionProfileGroup | P4ActionProfileMember | P4TableEntry] = [
            ~P4TableEntry("node", action=P4TableAction("set_node", hash_multiplier=multiplier), is_default_action=True),
            *(self._forward(self.next_hop(link.index), link.source_port) for link in leaving),
            *(
                +P4ActionProfileMember(
                    "ecmp",
                    member_id=7 + self.next_hop(link.index),
                    action=P4TableAction("set_next_hop", next_hop=self.next_hop(link.index)),
                )
                for link in leaving
            ),
        ]
        for number, route in enumerate(self.routing.routes(switch), 1):
            members = [P4Member(7 + self.next_hop(link), weight=1) for link in self.members(route.links)]
            updates += [
                +P4ActionProfileGroup("ecmp", group_id=number, max_size=16, members=members),
                self.route_to(route.address, route.prefix_length, group_id=number),
            ]
        for update in updates:
            await self.switches[switch].write([update])

    def _forward(self, next_hop: int, port: int) -> P4TableEntry:
        return +P4TableEntry(
            "next_hop",
            match=P4TableMatch(next_hop=next_hop),
            action=P4TableAction("forward", port=port, source_mac=2, destination_mac=4),
        )

    def route_to(
        self, address: int, length: int, *, member_id: int | None = None, group_id: int | None = None
    ) -> P4TableEntry:
        """The update with one route."""
        return +P4TableEntry(
            "routing",
            match=P4TableMatch(destination_address=(address, length)),
            action=fy.P4IndirectAction(member_id=member_id, group_id=group_id),
        )


@dataclass(frozen=True)
class SharedFabric:
    """An emulated fabric that a routing client has filled."""

    emulated: EmulatedFabric
    address: str
    client: RoutingClient

    @property
    def addresses(self) -> tuple[SwitchAddress, ...]:
        """The switches as a controller's configuration has them."""
        fabric = self.emulated.fabric
        return tuple(
            SwitchAddress(name=switch.name, address=self.address, device_id=switch.device_id)
            for switch in self.emulated.switches.values()
            if switch.name not in fabric.ordinary_switches
        )


@asynccontextmanager
async def routed_by_another(
    fabric: Fabric, routing: Routing, only: Container[str] | None = None
) -> AsyncIterator[SharedFabric]:
    """Serve a fabric on which another client has set the pipeline and written all routes, of ``only`` these switches.

    Ordinary switches run the same program, and serve levels by DSCP.
    """
    emulated = EmulatedFabric(
        fabric, compile_program(PROGRAM.read_text()), HostOptions(window_packets=40), trace_rows=100_000
    )
    pipeline = compiled_pipeline(P4INFO.read_text(), PROGRAM.read_bytes())
    exclusive = asyncio.Lock()
    service = P4RuntimeService(emulated.switches.values(), pipeline, exclusive, emulated.packet_out)
    async with serve(service, set_port=emulated.set_port) as port, AsyncExitStack() as stack:
        address = f"127.0.0.1:{port}"
        switches = {}
        for name, switch in emulated.switches.items():
            if only is not None and name not in only:
                continue
            options = fy.SwitchOptions(p4info=P4INFO, p4blob=PROGRAM, device_id=switch.device_id)
            switches[name] = await stack.enter_async_context(fy.Switch(name, address, options))
        client = RoutingClient(routing, switches)
        for name in switches:
            await client.route(name)
            if name in fabric.ordinary_switches:
                await client.serve_levels(name)
        yield SharedFabric(emulated, address, client)
