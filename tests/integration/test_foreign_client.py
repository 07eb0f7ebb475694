"""A P4Runtime client that is not our controller changes one flow's level, and the flow's packets overtake."""

import asyncio

import finsy as fy

from emulator.fabric import PS_PER_S, TraceKind
from p4src import P4INFO, PROGRAM
from tests.integration.fabrics import DUMBBELL, ServedFabric, base_routing, controlled, served_dumbbell
from topologies.addressing import UDP_PROTOCOL, FiveTuple

_TRANSFER_BYTES = 10_000_000
_BACKGROUND, _URGENT = 0, 1


async def _raise_level(served: ServedFabric, five_tuple: FiveTuple) -> None:
    """Write one entry into the first switch as its primary controller, bidding higher than the one before."""
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
    options = fy.SwitchOptions(p4info=P4INFO, p4blob=PROGRAM, device_id=1, initial_election_id=1 << 70)
    async with fy.Switch("t0", served.address, options) as switch:
        await switch.write([+entry])


async def _overtaking() -> tuple[list[int], list[int]]:
    """Flows in the order in which their packets start on the shared link: before the change, and after it."""
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
