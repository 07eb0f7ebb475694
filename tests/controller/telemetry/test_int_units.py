"""What Tofinos measure counts in the units of the other switches."""

import struct

import numpy as np

from controller.telemetry.int_reports import NOT_KNOWN, IntReportBatch
from controller.telemetry.int_units import IntUnits
from tests.topologies.mixing import with_tofinos
from topologies.specification import DumbbellSpecification

DUMBBELL = DumbbellSpecification(kind="dumbbell", hosts_per_side=1, host_link_gbps=100, bottleneck_gbps=100).build()
FABRIC = with_tofinos(DUMBBELL, {"t1"})
PATH = (
    DUMBBELL.nics["h0"][0].link,
    DUMBBELL.links_between("t0", "t1")[0],
    DUMBBELL.reverse(DUMBBELL.nics["h1"][0].link),
)
ONES_32 = 0xFFFF_FFFF


def hop(node: int, latency: int, queue: int, window_bytes: int) -> bytes:
    return struct.pack("!IHHIIQQI", node, 1, 2, latency, 3 << 24 | queue, 5_000_000, 5_000_000 + latency, window_bytes)


def test_nanoseconds_cells_and_longer_windows_of_a_tofino_are_converted() -> None:
    stacks = [hop(2, 12_999, queue, 1_024_000) + hop(1, 12, 7, 1_000_000) for queue in (0, 1, 19, 20, 12 * 19)]
    batch = IntReportBatch(stacks)
    assert not batch.contradictory
    samples = batch.samples(dict.fromkeys(range(len(stacks)), (PATH, 1.0)))
    found = IntUnits(FABRIC).converted(samples)
    assert found.links.tolist() == [PATH[2], PATH[1]] * 5
    assert found.latency_us.tolist() == [12, 12] * 5
    assert found.queue_packets[::2].tolist() == [0, 1, 1, 2, 12]
    assert found.queue_packets[1::2].tolist() == [7] * 5
    assert found.window_bytes.tolist() == [1_000_000] * 10
    assert found.level.tolist() == [3] * 10


def test_what_a_tofino_does_not_know_stays_unknown() -> None:
    unknown = struct.pack("!IHHIIQQI", 2, 1, 2, ONES_32, ONES_32, (1 << 64) - 1, (1 << 64) - 1, ONES_32)
    samples = IntReportBatch([unknown + hop(1, 12, 7, 9)]).samples({0: (PATH, 1.0)})
    found = IntUnits(FABRIC).converted(samples)
    for column in (found.latency_us, found.queue_packets, found.window_bytes, found.level):
        assert column[0] == NOT_KNOWN
        assert column[1] >= 0


def test_a_fabric_without_tofinos_keeps_its_measurements() -> None:
    samples = IntReportBatch([hop(2, 12, 7, 9) + hop(1, 12, 7, 9)]).samples({0: (PATH, 1.0)})
    assert IntUnits(DUMBBELL).converted(samples) is samples
    assert np.array_equal(samples.latency_us, [12, 12])
