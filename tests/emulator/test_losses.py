"""What the hosts' transport makes of lost packets: all is sent again, once, and nothing that had come."""

import pytest

from emulator.host_options import HostOptions
from emulator.observations import TraceKind
from tests.emulator.fabrics import (
    advance,
    completion_times,
    dumbbell,
    emulated,
    five_tuple,
    prioritise,
    star,
)
from tests.emulator.test_transport import ideal_ps
from topologies.addressing import TCP_PROTOCOL, UDP_PROTOCOL

TIMEOUT_PS = 67_108_864_000


@pytest.mark.parametrize("queue_limit_bytes", [4138, 9_000, 30_000])
@pytest.mark.parametrize("protocol", [UDP_PROTOCOL, TCP_PROTOCOL])
def test_all_bytes_arrive_though_queues_overflow(queue_limit_bytes: int, protocol: int) -> None:
    limit = queue_limit_bytes + 12  # room for a whole TCP packet
    result = emulated(dumbbell(3), HostOptions(window_packets=24), queue_limit_bytes=limit, trace_rows=10_000)
    flows = [
        result.add_flow(five_tuple(result.fabric, f"h{number}", f"h{3 + number}", protocol=protocol))
        for number in range(3)
    ]
    for flow in flows:
        result.start_transfer(flow, 300_000)
    completions = advance(result, 10**14)
    assert sorted(completion.flow for completion in completions) == flows
    lost = [row for row in result.take_trace() if row.kind is TraceKind.LOST]
    assert lost
    for flow in flows:
        assert result.retransmissions(flow) >= len({row.number for row in lost if row.flow == flow and row.length > 64})
    # The flows are whole again: another transfer ends too.
    result.start_transfer(flows[0], 4096)
    assert completion_times(result, flows[:1], result.now_ps + 10**13)


def test_losses_are_made_good_without_a_timeout_and_nothing_else_is_sent_again() -> None:
    """Queues that hold most of the windows: what is lost is sent again when later packets have overtaken it."""
    result = emulated(dumbbell(3), HostOptions(window_packets=24), queue_limit_bytes=150_000, trace_rows=1000)
    flows = [result.add_flow(five_tuple(result.fabric, f"h{n}", f"h{3 + n}")) for n in range(3)]
    for flow in flows:
        result.start_transfer(flow, 300_000)
    times = completion_times(result, flows)
    lost = [row for row in result.take_trace() if row.kind is TraceKind.LOST]
    assert lost
    for flow in flows:
        assert result.retransmissions(flow) == sum(row.flow == flow for row in lost)
    assert max(times.values()) < 3 * ideal_ps(3 * 300_000)


def test_single_lost_packets_are_sent_again_once() -> None:
    """A link goes down for less than a packet's time, every now and then."""
    result = emulated(star(2))
    to_receiver = result.fabric.reverse(result.fabric.nics["h1"][0].link)
    flow = result.add_flow(five_tuple(result.fabric, "h0", "h1"))
    result.start_transfer(flow, 400 * 4096)
    for number in range(1, 9):
        advance(result, number * 13_000_000)
        result.set_link(to_receiver, up=False)
        advance(result, number * 13_000_000 + 300_000)
        result.set_link(to_receiver, up=True)
    (completion,) = advance(result, 10**12)
    assert completion.time_ps < 2 * ideal_ps(400 * 4096)
    assert result.retransmissions(flow) == result.drops("s").link_down > 4


def test_a_window_that_is_lost_is_made_good_at_once_after_one_timeout() -> None:
    """The cable is whole again before the timer runs down: a question, its answer, and all of the window together."""
    result = emulated(star(2), trace_rows=10_000)
    size_bytes = 400 * 4096
    to_receiver = result.fabric.reverse(result.fabric.nics["h1"][0].link)
    flow = result.add_flow(five_tuple(result.fabric, "h0", "h1"))
    result.start_transfer(flow, size_bytes)
    advance(result, 50_000_000)
    acknowledged = result.progress(flow).acknowledged
    result.set_link(to_receiver, up=False)
    advance(result, 80_000_000)
    result.set_link(to_receiver, up=True)
    assert acknowledged < result.progress(flow).acknowledged < result.progress(flow).sent
    advance(result, TIMEOUT_PS)
    assert result.retransmissions(flow) == 0
    (completion,) = advance(result, 10**12)
    # What it asks with had come, and waited for others to be acknowledged with.
    assert result.retransmissions(flow) == result.drops("s").link_down + 1 == 31
    assert completion.time_ps < TIMEOUT_PS + 60_000_000 + ideal_ps(size_bytes)


@pytest.mark.parametrize("num_timeouts", [1, 2, 7])
def test_a_sender_asks_after_each_timeout_and_goes_on_within_the_next(num_timeouts: int) -> None:
    """What gets through ends the wait, however long it was: there is no longer timer to be kept."""
    result = emulated(star(2))
    flow = result.add_flow(five_tuple(result.fabric, "h0", "h1"))
    cable = result.fabric.nics["h1"][0].link
    result.set_link(result.fabric.reverse(cable), up=False)
    result.start_transfer(flow, 100 * 4096)
    advance(result, num_timeouts * TIMEOUT_PS - 1)
    assert result.retransmissions(flow) == num_timeouts - 1
    result.set_link(result.fabric.reverse(cable), up=True)
    (completion,) = advance(result, 10**13)
    assert num_timeouts * TIMEOUT_PS < completion.time_ps < num_timeouts * TIMEOUT_PS + 2 * ideal_ps(100 * 4096)
    assert result.retransmissions(flow) == num_timeouts + 31


def test_a_flow_that_waits_for_a_more_urgent_one_sends_a_packet_again_for_each_timeout_and_no_more() -> None:
    """Nothing of it is lost, and its sender learns so from the first answer."""
    result = emulated(dumbbell(2), rate_scale=1000)
    low, high = (five_tuple(result.fabric, f"h{n}", f"h{2 + n}") for n in range(2))
    prioritise(result, high, 5)
    low_flow, high_flow = result.add_flow(low), result.add_flow(high)
    result.start_transfer(low_flow, 10_000_000)
    advance(result, 100_000_000_000)
    result.start_transfer(high_flow, 3_000_000)
    assert result.drops("t0").queue_full == 0
    times = completion_times(result, [low_flow, high_flow])
    assert result.retransmissions(low_flow) == int(times[high_flow] - 100_000_000_000) // TIMEOUT_PS == 3
    assert result.retransmissions(high_flow) == 0
    assert times[low_flow] == pytest.approx(1000 * ideal_ps(13_000_000), rel=0.01)


def test_nothing_new_is_sent_while_gaps_are_open() -> None:
    """Of a window the first half is lost; it comes again, once, before anything that was not sent yet."""
    result = emulated(star(2), HostOptions(window_packets=16), trace_rows=1000)
    flow = result.add_flow(five_tuple(result.fabric, "h0", "h1"))
    nic_link = result.fabric.nics["h0"][0].link
    to_receiver = result.fabric.reverse(result.fabric.nics["h1"][0].link)
    result.set_link(to_receiver, up=False)
    result.start_transfer(flow, 64 * 4096)
    advance(result, 8 * 331_040 + 1_000_000)
    lost = result.drops("s").link_down
    result.set_link(to_receiver, up=True)
    (completion,) = advance(result, 10**12)
    numbers = [row.number for row in result.take_trace() if row.kind is TraceKind.QUEUED and row.link == nic_link]
    assert 4 < lost < 13
    assert numbers == [*range(16), *range(lost), *range(16, 64)]
    assert completion.time_ps < 2 * ideal_ps(64 * 4096)
