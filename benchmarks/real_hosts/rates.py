"""Rates through emulated switches: packets, TCP connections, and levels on one link; and round trips."""

import asyncio
import statistics
import time
from collections.abc import Mapping, Sequence

from benchmarks.real_hosts.wired_hosts import WiredHosts
from topologies.specification import DumbbellSpecification

RUNS = 3
FRAME_BYTES, DATAGRAM_BYTES, ETHERNET_MTU_BYTES = 1514, 1472, 1500
OFFERED_PER_S = 400_000
FLOOD_GBPS, LINK_GBPS, WIDE_GBPS = 10, 0.2, 1
LOW, HIGH, MOST_URGENT = 0, 5, 7
PINGS = 400
PORT = 5000

_STARTING_S, _MEASURED_S = 1.5, 4.0
_AFTER_S = 0.3
"""Senders go on a little longer than receivers count."""

Figures = dict[str, object]
Flow = tuple[str, str, int]
"""The hosts that send and receive, and the level."""


def dumbbell(hosts_per_side: int, host_gbps: float, between_gbps: float) -> DumbbellSpecification:
    """Return two switches with hosts of one GPU and one NIC."""
    return DumbbellSpecification(
        kind="dumbbell",
        hosts_per_side=hosts_per_side,
        gpus_per_host=1,
        nics_per_host=1,
        host_link_gbps=host_gbps,
        bottleneck_gbps=between_gbps,
    )


async def packet_figures(*, is_real_time: bool) -> Figures:
    """Flood two switches with datagrams, and count what reaches the other host."""
    topology = dumbbell(1, FLOOD_GBPS, FLOOD_GBPS)
    rates, cores, offered = [], [], []
    async with WiredHosts(topology, mtu_bytes=ETHERNET_MTU_BYTES, is_real_time=is_real_time) as hosts:
        for _ in range(RUNS):
            begin_s, end_s = _window()
            stop_s = end_s + _AFTER_S
            taking = asyncio.create_task(hosts.run("h1", "take", PORT, stop_s))
            flooding = asyncio.create_task(
                hosts.run("h0", "flood", hosts.address("h1"), PORT, DATAGRAM_BYTES, OFFERED_PER_S, stop_s)
            )
            counting = asyncio.create_task(_received_per_s(hosts, begin_s, end_s))
            cores.append(await hosts.emulator_cores(begin_s, end_s))
            rates.append(await counting)
            offered.append((await flooding)["sent_per_s"])
            await taking
    return {
        "packets_per_s": round(statistics.median(rates)),
        "packets_per_s_runs": [round(rate) for rate in rates],
        "packets_offered_per_s": round(statistics.median(offered)),
        "cores_at_packets": round(statistics.median(cores), 2),
    }


async def tcp_figures(*, is_real_time: bool) -> Figures:
    """Measure one connection, then eight hosts that send and receive at once."""
    one, eight, cores = [], [], []
    async with WiredHosts(dumbbell(4, LINK_GBPS, WIDE_GBPS), is_real_time=is_real_time) as hosts:
        names = hosts.fabric.hosts
        opposite = [(host, names[(number + 4) % 8], LOW) for number, host in enumerate(names)]
        for _ in range(RUNS):
            rates, _ = await tcp_rates_mbps(hosts, opposite[:1])
            one.append(rates[0])
            rates, taken = await tcp_rates_mbps(hosts, opposite)
            eight.append(min(rates))
            cores.append(taken)
    return {
        "tcp_mbps": round(statistics.median(one), 1),
        "tcp_mbps_eight_min": round(statistics.median(eight), 1),
        "cores_at_eight": round(statistics.median(cores), 2),
        "tcp_mbps_runs": [round(rate, 1) for rate in one],
        "tcp_mbps_eight_min_runs": [round(rate, 1) for rate in eight],
    }


async def level_figures(*, is_real_time: bool) -> Figures:
    """Time round trips on an idle and on a full link, and let a connection of a high level meet one of level 0."""
    idle, loaded, high, low = [], [], [], []
    async with WiredHosts(dumbbell(3, LINK_GBPS, LINK_GBPS), is_real_time=is_real_time) as hosts:
        asking, background = ("h2", "h5"), [("h0", "h3", LOW), ("h1", "h4", LOW)]
        for _ in range(RUNS):
            idle.append(statistics.median(await _round_trips_s(hosts, *asking, LOW)))
            # Both hosts offer what the link between the switches carries, so that its queue is full.
            filling = asyncio.create_task(tcp_rates_mbps(hosts, background))
            await asyncio.sleep(_STARTING_S)
            loaded.append(_p95(await _round_trips_s(hosts, *asking, MOST_URGENT)))
            await filling
            (alone,), _ = await tcp_rates_mbps(hosts, [("h0", "h3", HIGH)])
            (first, second), _ = await tcp_rates_mbps(hosts, [("h0", "h3", HIGH), ("h1", "h4", LOW)])
            high.append(first / alone)
            low.append(second / alone)
    return {
        "rtt_idle_median_s": round(statistics.median(idle), 6),
        "rtt_cs7_loaded_p95_s": round(statistics.median(loaded), 6),
        "high_share": round(statistics.median(high), 4),
        "low_share": round(statistics.median(low), 4),
        "rtt_cs7_loaded_p95_s_runs": [round(time_s, 6) for time_s in loaded],
    }


async def tcp_rates_mbps(hosts: WiredHosts, flows: Sequence[Flow]) -> tuple[list[float], float]:
    """Return what each of these flows brings to its receiver at the same time, and the emulator's cores meanwhile."""
    begin_s, end_s = _window()
    receiving = [
        asyncio.create_task(hosts.run(destination, "receive", PORT + number, begin_s, end_s))
        for number, (_, destination, _) in enumerate(flows)
    ]
    await asyncio.sleep(_STARTING_S / 3)
    sending = [
        asyncio.create_task(
            hosts.run(source, "send", hosts.address(destination), PORT + number, level, end_s + _AFTER_S)
        )
        for number, (source, destination, level) in enumerate(flows)
    ]
    cores = await hosts.emulator_cores(begin_s, end_s)
    rates = [found["rate_bps"] / 1e6 for found in await asyncio.gather(*receiving)]
    await asyncio.gather(*sending)
    return rates, cores


async def _round_trips_s(hosts: WiredHosts, source: str, destination: str, level: int) -> Sequence[float]:
    found: Mapping[str, Sequence[float]] = await hosts.run(source, "ping", hosts.address(destination), level, PINGS)
    return found["round_trips_s"]


async def _received_per_s(hosts: WiredHosts, begin_s: float, end_s: float) -> float:
    """Return how many full frames reach h1 a second."""
    await asyncio.sleep(begin_s - time.monotonic())
    before, from_s = hosts.namespaces.frame_bytes()["h1", 0][1], time.monotonic()
    await asyncio.sleep(end_s - from_s)
    return (hosts.namespaces.frame_bytes()["h1", 0][1] - before) / FRAME_BYTES / (time.monotonic() - from_s)


def _window() -> tuple[float, float]:
    """Return a beginning that leaves senders time to start, and an end."""
    begin_s = time.monotonic() + 2 * _STARTING_S
    return begin_s, begin_s + _MEASURED_S


def _p95(times_s: Sequence[float]) -> float:
    return statistics.quantiles(times_s, n=20)[-1]
