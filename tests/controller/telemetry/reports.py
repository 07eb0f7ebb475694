"""Reports of probes, made up by hand."""

import struct
from itertools import pairwise

import numpy as np

from controller.api.messages import probe_answer, probe_exchange
from controller.telemetry.int_reports import NOT_KNOWN, HopSamples
from controller.telemetry.telemetry import Telemetry
from hostlib.wire import trainyard_pb2 as wire
from topologies.addressing import FiveTuple
from topologies.fabric import Fabric, Path


def stack(fabric: Fabric, path: Path) -> bytes:
    """What idle switches of a path leave, the newest on top."""
    hops = []
    for before, after in pairwise(path):
        link = fabric.links[after]
        ports = fabric.links[before].destination_port, link.source_port
        hops.append(struct.pack("!IHHIIQQI", fabric.switch_index[link.source] + 1, *ports, 7, 3 << 24 | 2, 1, 8, 4096))
    return b"".join(reversed(hops))


def five_tuple_to_wire(flow: FiveTuple, port: int) -> wire.FiveTuple:
    """The 5-tuple of a probe for a flow, from a port."""
    return wire.FiveTuple(
        source_address=flow.source_address,
        destination_address=flow.destination_address,
        protocol=flow.protocol,
        source_port=port,
        destination_port=flow.destination_port,
    )


def exchange(telemetry: Telemetry, request: wire.ExchangeProbesRequest, now_s: float) -> wire.ExchangeProbesResponse:
    """An exchange of an authorised host, as the service hands it on."""
    return probe_answer(telemetry.exchange(probe_exchange(request), now_s))


def samples(path: Path, came_s: float, window_bytes: int = NOT_KNOWN) -> HopSamples:
    """What a probe by a path has heard of its links: their loads at most."""
    links = np.array(path[:0:-1])
    not_known = np.full(len(links), NOT_KNOWN)
    times_s = np.full(len(links), came_s)
    return HopSamples(links, times_s, not_known, not_known, not_known, np.full(len(links), window_bytes))
