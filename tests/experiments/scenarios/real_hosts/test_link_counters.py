"""What switches and hosts' interfaces count becomes the utilisation of links, by level."""

import asyncio
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from typing import Any

import grpc
import pytest
from finsy.proto import p4r, p4r_grpc

from experiments.scenarios.real_hosts.link_counters import LinkCounters
from experiments.scenarios.real_hosts.p4_counters import P4Counters
from tests.experiments.scenarios.real_hosts.here import Here
from topologies.specification import DumbbellSpecification

RATE_BPS = 100e6
FABRIC = DumbbellSpecification(
    kind="dumbbell", hosts_per_side=1, gpus_per_host=1, nics_per_host=1, host_link_gbps=0.1, bottleneck_gbps=0.1
).build()
ONE_SECOND_BYTES = round(RATE_BPS / 8)


class CountingSwitches(p4r_grpc.P4RuntimeServicer):
    """All switches, with bytes and packets by switch, port and level; they answer in two parts, last counters first."""

    def __init__(self) -> None:
        self.counts: dict[tuple[str, int, int], tuple[int, int]] = {}

    # grpc.aio also takes generators; the generated base class does not declare them.
    async def Read(  # type: ignore[override] # noqa: N802
        self, request: p4r.ReadRequest, _context: Any
    ) -> AsyncIterator[p4r.ReadResponse]:
        switch = FABRIC.switches[request.device_id - 1]
        entities = list(request.entities)[::-1]
        for entity in entities:
            entry = entity.counter_entry
            port, level = divmod(entry.index.index, 8)
            entry.data.byte_count, entry.data.packet_count = self.counts.get((switch, port, level), (0, 0))
        for part in (entities[:3], entities[3:]):
            yield p4r.ReadResponse(entities=part)


class CountingHosts(Here):
    """Hosts whose interfaces have sent so many bytes."""

    def __init__(self) -> None:
        self.sent: dict[tuple[str, int], int] = {}

    def frame_bytes(self) -> Mapping[tuple[str, int], tuple[int, int]]:
        """Return what NICs have sent, and something else that they have received."""
        return {nic: (sent, 999) for nic, sent in self.sent.items()}


@asynccontextmanager
async def _counters() -> AsyncIterator[tuple[LinkCounters, CountingSwitches, CountingHosts]]:
    server, switches, hosts = grpc.aio.server(), CountingSwitches(), CountingHosts()
    p4r_grpc.add_P4RuntimeServicer_to_server(switches, server)
    port = server.add_insecure_port("127.0.0.1:0")
    await server.start()
    try:
        async with (
            P4Counters(FABRIC, f"127.0.0.1:{port}") as counted,
            LinkCounters(FABRIC, hosts, counted) as counters,
        ):
            yield counters, switches, hosts
    finally:
        await server.stop(None)


def _used(utilisation: tuple[tuple[float, ...], ...]) -> dict[tuple[str, int], float]:
    """Return the levels of links that have carried anything, a link as its two ends."""
    return {
        (f"{link.source}>{link.destination}", level): pytest.approx(share)
        for link in FABRIC.links
        for level, share in enumerate(utilisation[link.index])
        if share
    }


def test_bytes_count_for_their_own_link_level_and_interval() -> None:
    one, other = FABRIC.switches
    between = next(link for link in FABRIC.links if (link.source, link.destination) == (one, other))
    down = next(link for link in FABRIC.links if (link.source, link.destination) == (other, "h1"))

    async def sampled() -> None:
        async with _counters() as (counters, switches, hosts):
            hosts.sent["h0", 0] = ONE_SECOND_BYTES // 4
            switches.counts = {
                (one, between.source_port, 7): (ONE_SECOND_BYTES // 2, 10),
                (other, down.source_port, 3): (ONE_SECOND_BYTES, 20),
            }
            first = await counters.sample(2.0)
            assert (first.from_s, first.to_s) == (0.0, 2.0)
            assert _used(first.utilisation) == {
                (f"h0>{one}", 0): 0.125,
                (f"{one}>{other}", 7): 0.25,
                (f"{other}>h1", 3): 0.5,
            }
            switches.counts[one, between.source_port, 7] = ONE_SECOND_BYTES, 15
            second = await counters.sample(3.0)
            assert (second.from_s, second.to_s) == (2.0, 3.0)
            assert _used(second.utilisation) == {(f"{one}>{other}", 7): 0.5}
            assert counters.packets == 35

    asyncio.run(sampled())


def test_switches_that_are_started_again_count_from_zero() -> None:
    one, other = FABRIC.switches
    between = next(link for link in FABRIC.links if (link.source, link.destination) == (one, other))

    async def sampled() -> None:
        async with _counters() as (counters, switches, _):
            switches.counts[one, between.source_port, 5] = ONE_SECOND_BYTES, 100
            await counters.sample(1.0)
            switches.counts[one, between.source_port, 5] = ONE_SECOND_BYTES // 5, 20
            sample = await counters.sample(2.0)
            assert _used(sample.utilisation) == {(f"{one}>{other}", 5): 0.2}
            assert counters.packets == 120

    asyncio.run(sampled())
