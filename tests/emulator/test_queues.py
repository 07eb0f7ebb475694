"""Strict priority on every link, read from the trace of what queues and links did."""

from collections import defaultdict, deque
from collections.abc import Iterable
from dataclasses import dataclass, field

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy import float64
from numpy.typing import NDArray

from emulator.fabric import EmulatedFabric
from emulator.host_options import HostOptions
from emulator.observations import TraceKind, TraceRow
from tests.emulator.fabrics import advance, dumbbell, emulated, five_tuple, prioritise, star
from topologies.fabric import Fabric

LATEST_START_PS = 20_000_000
END_PS = 2_000_000_000
"""Long after the last first transmission, before the first timeout."""


@dataclass
class LinkModel:
    """What the trace must say of one link: eight queues, one packet on the wire at a time."""

    ps_per_byte: float
    limit_bytes: int
    free_ps: float = 0
    waiting_since_ps: int = 0
    queues: dict[int, deque[TraceRow]] = field(default_factory=lambda: defaultdict(deque))

    def follow(self, row: TraceRow) -> None:
        """Check that a row of the trace may happen now, and let it."""
        queue = self.queues[row.level]
        fits = sum(packet.length for packet in queue) + row.length <= self.limit_bytes
        match row.kind:
            case TraceKind.LOST:
                assert not fits, f"{row} was lost though the queue had room"
            case TraceKind.QUEUED:
                assert fits, f"{row} was queued in a full queue"
                if not self.waits():
                    self.waiting_since_ps = row.time_ps
                queue.append(row)
            case TraceKind.STARTED:
                self._start(row)

    def waits(self) -> bool:
        """Whether any packet waits."""
        return any(self.queues.values())

    def _start(self, row: TraceRow) -> None:
        above = [level for level, queue in self.queues.items() if queue and level > row.level]
        assert not above, f"{row} has started before packets of levels {above}"
        assert self.queues[row.level], f"{row} has started but was never queued"
        first = self.queues[row.level].popleft()
        assert (first.flow, first.number, first.length) == (row.flow, row.number, row.length), f"{row} is not the first"
        # Not before the link is free, and at once when it is free and something waits.
        assert row.time_ps == pytest.approx(max(self.free_ps, self.waiting_since_ps), rel=0, abs=1)
        self.free_ps = row.time_ps + row.length * self.ps_per_byte
        self.waiting_since_ps = row.time_ps


def check_trace(
    rows: Iterable[TraceRow], ps_per_byte: NDArray[float64], limit_bytes: int, now_ps: int
) -> dict[TraceKind, int]:
    """Replay a trace from rest to ``now_ps`` through a model of every link; how many rows it has of each kind."""
    links = [LinkModel(float(duration), limit_bytes) for duration in ps_per_byte]
    counts = dict.fromkeys(TraceKind, 0)
    last_ps = 0
    for row in rows:
        assert row.time_ps >= last_ps
        last_ps = row.time_ps
        counts[row.kind] += 1
        links[row.link].follow(row)
    for link in links:
        assert not link.waits() or link.free_ps > now_ps - 1, "a link stands idle and packets wait"
    return counts


@dataclass(frozen=True)
class Sender:
    """A transfer of the scenario."""

    source: int
    destination: int
    level: int
    nic_level: int
    size_bytes: int
    start_ps: int


senders = st.builds(
    Sender,
    st.integers(0, 3),
    st.integers(0, 3),
    st.integers(0, 7),
    st.integers(0, 7),
    st.integers(1, 60_000),
    st.integers(0, LATEST_START_PS),
)
fabrics = st.sampled_from([dumbbell(2), dumbbell(2, host_gbps=100.0), star(4), star(4, gbps=10.0)])


@settings(max_examples=60, deadline=None)
@given(
    fabrics,
    st.lists(senders, min_size=1, max_size=8),
    st.sampled_from([16_000_000, 20_000, 6_000]),
    st.sampled_from([4096, 1000]),
    st.integers(0, END_PS),
)
def test_every_link_keeps_strict_priority_and_its_rate(
    fabric: Fabric, transfers: list[Sender], limit_bytes: int, mtu_bytes: int, stop_ps: int
) -> None:
    result = emulated(fabric, HostOptions(mtu_bytes), queue_limit_bytes=limit_bytes, trace_rows=100)
    start(result, transfers)
    rows = result.take_trace()
    counts = check_trace(rows, result.ps_per_byte, limit_bytes, result.now_ps)
    assert counts[TraceKind.STARTED] == counts[TraceKind.QUEUED] > 0
    # A link says the same when it is looked at in the middle.
    check_trace([row for row in rows if row.time_ps <= stop_ps], result.ps_per_byte, limit_bytes, stop_ps)


def start(result: EmulatedFabric, transfers: list[Sender]) -> None:
    """Let the transfers start at their times, and time pass to the end."""
    for number, sender in sorted(enumerate(transfers), key=lambda pair: pair[1].start_ps):
        connection = five_tuple(
            result.fabric, f"h{sender.source}", f"h{sender.destination}", source_port=49152 + number
        )
        prioritise(result, connection, sender.level)
        flow = result.add_flow(connection)
        result.set_flow_level(flow, sender.nic_level)
        advance(result, sender.start_ps)
        result.start_transfer(flow, sender.size_bytes)
    advance(result, END_PS)


def test_trace_is_complete_however_many_transfers_start_at_once() -> None:
    """Of each flow one packet waits at the NIC."""
    result = emulated(star(4), trace_rows=10)
    for number in range(1280):
        flow = result.add_flow(five_tuple(result.fabric, "h0", f"h{1 + number % 3}", source_port=49152 + number))
        result.start_transfer(flow, 32 * 4096)
    queued = [row for row in result.take_trace() if row.kind is TraceKind.QUEUED]
    assert len(queued) == 1280


def test_levels_share_a_port_as_strict_priority_says() -> None:
    """One flow of every level from a host of its own to the same host: they end in order of their levels."""
    result = emulated(star(9), trace_rows=1000)
    flows = []
    for level in range(8):
        connection = five_tuple(result.fabric, f"h{level}", "h8")
        prioritise(result, connection, level)
        flows.append(result.add_flow(connection))
    for flow in flows:
        result.start_transfer(flow, 400_000)
    order = [completion.flow for completion in advance(result, END_PS)]
    assert order == flows[::-1]
    check_trace(result.take_trace(), result.ps_per_byte, 16_000_000, result.now_ps)
    to_receiver = result.fabric.reverse(result.fabric.nics["h8"][0].link)
    wire_bytes = 400_000 + 98 * 42
    assert result.sent_bytes()[to_receiver].tolist() == [wire_bytes] * 8


def test_the_bytes_that_wait_are_those_queued_and_not_started() -> None:
    result = emulated(star(3), trace_rows=1000)
    for level in (2, 5):
        connection = five_tuple(result.fabric, f"h{level // 5}", "h2")
        prioritise(result, connection, level)
        result.start_transfer(result.add_flow(connection), 400_000)
    assert not result.run(20_000_000)  # both are under way
    expected = np.zeros((len(result.fabric.links), 8), dtype=np.int64)
    for row in result.take_trace():
        assert row.kind is not TraceKind.LOST
        expected[row.link, min(row.level, 7)] += row.length if row.kind is TraceKind.QUEUED else -row.length
    to_receiver = result.fabric.reverse(result.fabric.nics["h2"][0].link)
    assert result.queued_bytes()[to_receiver, 2] > result.queued_bytes()[to_receiver, 5] > 0
    assert (result.queued_bytes() == expected).all()
