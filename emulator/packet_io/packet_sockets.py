"""The packet sockets of a fabric in wall-clock time: by them programs send packets to ports, and receive from ports."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Mapping
from contextlib import AsyncExitStack, asynccontextmanager

from emulator.fabric import EmulatedFabric
from emulator.observations import Capture
from emulator.packet_io.messages import PacketAddress
from emulator.packet_io.packet_socket import PacketSocket
from topologies.fabric import Fabric

Deliver = Callable[[Iterable[Capture]], None]


def host_links(fabric: Fabric, switch: str) -> dict[int, int]:
    """Return the link from the host behind each port of a switch that has one, by the port's number."""
    return {
        link.source_port: fabric.reverse(link.index)
        for link in fabric.links_from[switch]
        if link.destination in fabric.host_index
    }


@asynccontextmanager
async def packet_sockets(
    emulated: EmulatedFabric, addresses: Mapping[str, PacketAddress], exclusive: asyncio.Lock, wake: Callable[[], None]
) -> AsyncIterator[Deliver]:
    """Listen for programs at an address for each of some switches; yields what takes the packets that hosts receive.

    What a program sends to a port arrives there at once.

    Args:
        emulated: The fabric.
        addresses: By switch.
        exclusive: Held by whoever changes the fabric.
        wake: Called after that, so that time goes on.

    Raises:
        OSError: An address cannot be bound.
    """
    by_link: dict[int, tuple[PacketSocket, int]] = {}
    async with AsyncExitStack() as stack:
        for switch, address in addresses.items():
            made = _socket(emulated, switch, address, exclusive, wake)
            await made.listen()
            stack.push_async_callback(made.close)
            for port, link in host_links(emulated.fabric, switch).items():
                by_link[emulated.fabric.reverse(link)] = made, port

        def deliver(captures: Iterable[Capture]) -> None:
            for capture in captures:
                if capture.link in by_link:
                    reached, port = by_link[capture.link]
                    reached.deliver(port, capture.octets.ljust(capture.length, b"\0"))

        yield deliver


def _socket(
    emulated: EmulatedFabric, switch: str, address: PacketAddress, exclusive: asyncio.Lock, wake: Callable[[], None]
) -> PacketSocket:
    fabric = emulated.fabric
    links = host_links(fabric, switch)
    nics = {nic.link: nic for nics in fabric.nics.values() for nic in nics}
    macs = {port: None if nics[link].mac is None else str(nics[link].mac) for port, link in links.items()}

    async def changed(change: Callable[[], None]) -> None:
        async with exclusive:
            change()
        wake()

    def send(port: int, octets: bytes) -> Awaitable[None]:
        return changed(lambda: emulated.inject(links[port], octets))

    def set_port(port: int, up: bool) -> Awaitable[None]:
        return changed(lambda: emulated.set_port(switch, port, enabled=up))

    return PacketSocket(switch, address, macs, send, set_port)
