"""Dumbbells whose flows have congestion controls, and what is measured on them."""

from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from emulator.congestion.dctcp import DCTCP
from emulator.congestion.reno import RENO
from emulator.congestion.swift import SWIFT
from emulator.fabric import PS_PER_S, EmulatedFabric
from emulator.host_options import HostOptions
from tests.emulator.fabrics import advance, five_tuple
from topologies.fabric import Fabric
from topologies.specification import DumbbellSpecification

PAYLOAD_BYTES = 1458
PACKET_BYTES = 1500
BOTTLENECK_GBPS = 10
TARGET_S = 40e-6
BASE_RTT_S = 27.6e-6
"""Of a packet that waits nowhere in ``fast_hosts``."""


def hosts(initial_window: float = 10, acknowledge_every: int = 1) -> HostOptions:
    """Hosts with all shipped controls; parameters do not change what is compiled."""
    first = {"initial_window": initial_window}
    swift = SWIFT.with_parameters({"base_target_s": TARGET_S, **first})
    controls = RENO.with_parameters(first), DCTCP.with_parameters(first), swift, "fixed"
    return HostOptions(PAYLOAD_BYTES, acknowledge_every=acknowledge_every, congestion_controls=controls)


def fast_hosts(pairs: int, delay_us: float = 4.0) -> Fabric:
    """A dumbbell whose hosts are four times as fast as the cable between its switches."""
    return DumbbellSpecification(
        kind="dumbbell", hosts_per_side=pairs, host_link_gbps=40, bottleneck_gbps=BOTTLENECK_GBPS, delay_us=delay_us
    ).build()


def send(result: EmulatedFabric, control: str, pairs: int, size_bytes: int = 100_000_000) -> list[int]:
    """Start a transfer between each pair of hosts."""
    flows = [result.add_flow(five_tuple(result.fabric, f"h{n}", f"h{pairs + n}"), control) for n in range(pairs)]
    for flow in flows:
        result.start_transfer(flow, size_bytes)
    return flows


@dataclass(frozen=True)
class Samples:
    """What was seen at regular times; arrays of shape (times, flows), ``queue`` (times,) in packets."""

    time_s: NDArray[np.float64]
    window: NDArray[np.float64]
    acknowledged: NDArray[np.int64]
    round_trip_s: NDArray[np.float64]
    alpha: NDArray[np.float64]
    queue: NDArray[np.float64]

    @property
    def rates(self) -> NDArray[np.float64]:
        """Packets per second that each flow's sender knows to have arrived."""
        packets: NDArray[np.float64] = self.acknowledged[-1] - self.acknowledged[0].astype(np.float64)
        return packets / (self.time_s[-1] - self.time_s[0])

    @property
    def goodput_gbps(self) -> float:
        """Payload of all flows."""
        return float(self.rates.sum()) * 8 * PAYLOAD_BYTES / 1e9

    @property
    def fairness(self) -> float:
        """Jain's index (Jain, Chiu and Hawe, 1984)."""
        return float(self.rates.sum() ** 2 / (len(self.rates) * (self.rates**2).sum()))

    def last(self, share: float) -> "Samples":
        """The last part of the time."""
        first = int(len(self.time_s) * (1 - share))
        return Samples(*(getattr(self, name)[first:] for name in self.__dataclass_fields__))


def watch(result: EmulatedFabric, flows: list[int], for_s: float, step_s: float = 20e-6) -> Samples:
    """Let time pass, and look at senders and at the queue between the switches."""
    (link,) = [link.index for link in result.fabric.links if (link.source, link.destination) == ("t0", "t1")]
    rows = []
    for _ in range(round(for_s / step_s)):
        advance(result, result.now_ps + round(step_s * PS_PER_S))
        senders = [result.sender(flow) for flow in flows]
        rows.append(
            (
                result.now_ps / PS_PER_S,
                [sender.window_packets for sender in senders],
                [result.progress(flow).acknowledged for flow in flows],
                [sender.round_trip_s for sender in senders],
                [sender.words.get("alpha", 0.0) for sender in senders],
                result.queued_bytes()[link].sum() / PACKET_BYTES,
            )
        )
    return Samples(*map(np.array, zip(*rows, strict=True)))


def peaks(window: NDArray[np.float64]) -> list[tuple[float, float]]:
    """Where a window has shrunk: from, and to."""
    return [(float(before), float(after)) for before, after in pairwise(window) if after < 0.9 * before]
