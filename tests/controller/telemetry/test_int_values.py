"""What hops tell of queues, latency and utilisation, against the emulator's own record of every queue and link."""

from collections import Counter
from ipaddress import IPv4Address

import pytest

from emulator.fabric import PS_PER_S, EmulatedFabric
from emulator.observations import Capture, TraceKind, TraceRow
from hostlib.telemetry.parsing import parse_probe
from hostlib.telemetry.probes import ETHERNET_BYTES, Mark, Probe, probe_packet
from hostlib.types import FiveTuple
from tests.controller.telemetry.probed import advance
from tests.emulator.fabrics import emulated, five_tuple, prioritise
from topologies.fabric import Fabric
from topologies.specification import ClosSpecification

PS_PER_US = 1_000_000
WINDOW_PS = (1 << 14) * PS_PER_US
LEVELS = (0, 3)
FLOW_PROTOCOL, FLOW_PORT = 17, 4791


def crowded() -> tuple[Fabric, EmulatedFabric]:
    """Two hosts of the first ToR that send to one of the second, at two levels, more than its cable carries."""
    fabric = ClosSpecification(
        kind="clos", tors=2, aggs=2, hosts_per_tor=2, host_link_gbps=10, uplink_gbps=10, uplinks_per_pair=1
    ).build()
    result = emulated(fabric, trace_rows=1 << 16)
    for number, (source, level) in enumerate((("h0", 0), ("h1", 0), ("h0", 3), ("h1", 3))):
        flow = five_tuple(fabric, source, "h2", 49_152 + number)
        if level:
            prioritise(result, flow, level)
        result.start_transfer(result.add_flow(flow), 3_000_000 if level else 60_000_000)
    return fabric, result


class Reference:
    """Queues and links replayed from the trace, one row after the other."""

    def __init__(self) -> None:
        self.waiting: Counter[tuple[int, int]] = Counter()
        self.window_bytes: Counter[tuple[int, int]] = Counter()
        self._probes: dict[int, TraceRow] = {}
        self.hops: list[tuple[int, int, int, int, int]] = []
        """Of every probe's hop: link, level, packets that waited, when it came to the queue and when it left."""
        self._depth: dict[int, int] = {}

    def note(self, row: TraceRow) -> None:
        queue = row.link, row.level
        match row.kind:
            case TraceKind.QUEUED:
                if row.flow < 0:
                    self._probes[row.link], self._depth[row.link] = row, self.waiting[queue]
                self.waiting[queue] += 1
            case TraceKind.STARTED:
                self.waiting[queue] -= 1
                if row.flow < 0:
                    came = self._probes.pop(row.link)
                    self.hops.append((row.link, row.level, self._depth[row.link], came.time_ps, row.time_ps))
                self.window_bytes[row.link, row.time_ps // WINDOW_PS] += row.length


@pytest.mark.slow
def test_every_hop_tells_what_the_emulator_knows() -> None:
    fabric, result = crowded()
    nics = fabric.nics
    reference = Reference()
    checked, deepest = 0, 0
    for number in range(30):
        level = LEVELS[number % 2]
        source, destination = (IPv4Address(nics[host][0].address) for host in ("h0", "h2"))
        flow = FiveTuple(source, destination, FLOW_PROTOCOL, 50_000 + number, FLOW_PORT)
        packet = probe_packet(Probe(flow, level, Mark(1, number, 0, 0)))
        result.inject(nics["h0"][0].link, bytes(12) + b"\x08\x00" + packet)
        captured: tuple[Capture, ...] = ()
        while not captured:
            advance(result, result.now_ps + PS_PER_S // 1000)
            captured = result.captured()
        for row in result.take_trace():
            reference.note(row)
        [capture] = captured
        hops = parse_probe(capture.octets[ETHERNET_BYTES:]).hops
        assert len(hops) == len(reference.hops) == 3
        for hop, (link, queue, waiting, came_ps, left_ps) in zip(hops, reference.hops, strict=True):
            assert hop.egress_port == fabric.links[link].source_port
            assert (hop.level, hop.queue_packets) == (queue, waiting) == (level, waiting)
            assert (hop.ingress_us, hop.egress_us) == (came_ps // PS_PER_US, left_ps // PS_PER_US)
            assert hop.latency_us == left_ps // PS_PER_US - came_ps // PS_PER_US
            assert hop.window_bytes == reference.window_bytes[link, left_ps // WINDOW_PS - 1]
            checked += bool(hop.window_bytes)
            deepest = max(deepest, waiting)
        reference.hops.clear()
    assert checked > 20
    assert deepest > 3
