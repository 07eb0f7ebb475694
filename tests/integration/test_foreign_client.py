"""Another P4Runtime client than our controller raises a flow's level, exchanges packets and reads counters."""

import asyncio
from collections.abc import AsyncIterator
from typing import cast

import finsy as fy
import pytest

from emulator.fabric import PS_PER_S
from emulator.observations import TraceKind
from p4src import P4INFO, PROGRAM
from tests.emulator.packets import ETHERNET
from tests.integration.fabrics import DUMBBELL, ServedFabric, base_routing, controlled, served_dumbbell
from tests.patience import PATIENCE_S
from topologies.addressing import UDP_PROTOCOL, FiveTuple

_TRANSFER_BYTES = 10_000_000
_BACKGROUND, _URGENT = 0, 1
_ARP = ETHERNET + b"\x08\x06" + bytes(46)
_LLDP = ETHERNET + b"\x88\xcc" + bytes(46)
_PACKET_OUT_BYTES = 2  # the header in front of a PacketOut counts, as on BMv2


def _controller(served: ServedFabric, device_id: int) -> fy.Switch:
    """Return a finsy controller with a higher election id than the last one."""
    options = fy.SwitchOptions(p4info=P4INFO, p4blob=PROGRAM, device_id=device_id, initial_election_id=1 << 70)
    return fy.Switch(f"device {device_id}", served.address, options)


async def _raise_level(served: ServedFabric, five_tuple: FiveTuple) -> None:
    """Write one entry into the first switch as its primary controller."""
    entry = fy.P4TableEntry(
        "ingress.flow",
        match=fy.Match(
            source_address=five_tuple.source_address,
            destination_address=five_tuple.destination_address,
            protocol=five_tuple.protocol,
            source_port=five_tuple.source_port,
            destination_port=five_tuple.destination_port,
        ),
        action=fy.Action("ingress.prioritise", level=7),
    )
    async with _controller(served, 1) as switch:
        await switch.write([+entry])


async def _overtaking() -> tuple[list[int], list[int]]:
    """Return the flows in the order of their packets on the shared link, before the change and after it."""
    fabric = DUMBBELL.build()
    async with served_dumbbell(trace_rows=1_000_000) as served:
        emulated = served.emulated
        async with controlled(served):
            await base_routing(emulated)
        five_tuples = [
            FiveTuple(
                fabric.nics[source][0].address, fabric.nics[destination][0].address, UDP_PROTOCOL, 50_000 + n, 4791
            )
            for n, (source, destination) in enumerate((("h0", "h2"), ("h1", "h3")))
        ]
        for five_tuple in five_tuples:
            emulated.start_transfer(emulated.add_flow(five_tuple), _TRANSFER_BYTES)
        shared = next(link.index for link in fabric.links if (link.source, link.destination) == ("t0", "t1"))

        def started() -> list[int]:
            rows = emulated.take_trace()
            return [row.flow for row in rows if row.kind is TraceKind.STARTED and row.link == shared]

        assert emulated.run(PS_PER_S // 20) == ()
        before = started()
        await _raise_level(served, five_tuples[_URGENT])
        completions = []
        while not completions:
            completions += emulated.run(PS_PER_S)
        assert [completion.flow for completion in completions] == [_URGENT]
        return before, started()


def test_a_flow_whose_level_is_raised_overtakes() -> None:
    before, after = asyncio.run(_overtaking())
    # Half and half as equals.
    assert abs(before.count(_BACKGROUND) - before.count(_URGENT)) <= 0.05 * len(before)
    # Then, once what had been queued as an equal is gone, the link is the urgent flow's until it has finished.
    last = len(after) - after[::-1].index(_URGENT)
    queued_as_equals = 2 * 40
    assert len(after[queued_as_equals:last]) > 500
    assert after[queued_as_equals:last].count(_URGENT) >= 0.99 * len(after[queued_as_equals:last])


async def _first(packets: AsyncIterator[fy.P4PacketIn]) -> fy.P4PacketIn:
    return await anext(packets)


async def _exchanged(frame: bytes) -> tuple[fy.P4PacketIn, list[fy.P4CounterEntry], int]:
    """Send a frame out of one switch; return it as the other's controller receives it, and the counters."""
    there = next(link for link in DUMBBELL.build().links if (link.source, link.destination) == ("t0", "t1"))
    async with served_dumbbell() as served, _controller(served, 1) as first, _controller(served, 2) as second:
        received = asyncio.create_task(_first(second.read_packets()))
        await asyncio.sleep(0)  # its queue is there from now on
        await first.write([fy.P4PacketOut(frame, egress_port=there.source_port, padding=0)])
        async with asyncio.timeout(PATIENCE_S):
            while not received.done():
                await served.clock.run(served.emulated.now_ps + PS_PER_S // 1000)
                await asyncio.sleep(0.01)
        # The method is an asynchronous generator, but its overloads are declared as coroutines.
        cells = cast(AsyncIterator[fy.P4CounterEntry], first.read(fy.P4CounterEntry("egress.level_counter")))
        return await received, [cell async for cell in cells if cell.packet_count], there.destination_port


@pytest.mark.parametrize("frame", [_ARP, _LLDP], ids=["ARP", "LLDP"])
def test_packets_go_from_one_controller_through_two_switches_to_the_other(frame: bytes) -> None:
    packet, counted, port = asyncio.run(_exchanged(frame))
    assert packet.payload == frame
    assert packet["ingress_port"] == port
    assert [(cell.packet_count, cell.byte_count) for cell in counted] == [(1, _PACKET_OUT_BYTES + len(frame))]
