"""The hosts' transport: what transfers take, alone and together, and that every one ends exactly once."""

from itertools import pairwise

import pytest

from emulator.entries import ActionCall
from emulator.fabric import EmulatedFabric
from emulator.host_options import HostOptions
from emulator.observations import TraceKind, TraceRow
from tests.emulator.fabrics import (
    advance,
    completion_times,
    dumbbell,
    emulated,
    five_tuple,
    flow_key,
    prioritise,
    routing_of,
    star,
)
from topologies.addressing import TCP_PROTOCOL, UDP_PROTOCOL, FiveTuple
from topologies.specification import ClosSpecification

BOTTLENECK_BPS = 100e9


def ideal_ps(size_bytes: float, rate_bps: float = BOTTLENECK_BPS) -> float:
    """Time for so many bytes at a rate."""
    return 8e12 * size_bytes / rate_bps


@pytest.mark.parametrize("rate_scale", [1.0, 1000.0])
@pytest.mark.parametrize("protocol", [UDP_PROTOCOL, TCP_PROTOCOL])
def test_transfer_alone_takes_its_bytes_over_the_bandwidth(rate_scale: float, protocol: int) -> None:
    result = emulated(dumbbell(1), rate_scale=rate_scale)
    flow = result.add_flow(five_tuple(result.fabric, "h0", "h1", protocol=protocol))
    result.start_transfer(flow, 20_000_000)
    times = completion_times(result, [flow])
    assert times[flow] == pytest.approx(ideal_ps(20_000_000 * rate_scale), rel=0.005)
    assert result.retransmissions(flow) == 0


def test_traffic_both_ways_has_the_payload_rate_with_its_acknowledgements() -> None:
    """Nor do acknowledgements hold up the windows, small as they are."""
    result = emulated(dumbbell(1, host_gbps=100.0), HostOptions(window_packets=15), rate_scale=1000)
    flows = [result.add_flow(five_tuple(result.fabric, *ends)) for ends in (("h0", "h1"), ("h1", "h0"))]
    for flow in flows:
        result.start_transfer(flow, 20_000_000)
    for time_ps in completion_times(result, flows).values():
        assert time_ps == pytest.approx(1000 * ideal_ps(20_000_000), rel=0.005)
        assert time_ps >= 1000 * ideal_ps(20_000_000)


@pytest.mark.parametrize("size_bytes", [1, 4095, 4096, 4097, 100_000])
@pytest.mark.parametrize("protocol", [UDP_PROTOCOL, TCP_PROTOCOL])
def test_receiver_gets_the_bytes_and_headers_and_no_more(size_bytes: int, protocol: int) -> None:
    result = emulated(star(2))
    flow = result.add_flow(five_tuple(result.fabric, "h0", "h1", protocol=protocol))
    result.start_transfer(flow, size_bytes)
    advance(result, 10**9)
    to_receiver = result.fabric.reverse(result.fabric.nics["h1"][0].link)
    header_bytes = 42 if protocol == UDP_PROTOCOL else 54
    num_packets = -(-size_bytes // 4096)
    assert result.sent_bytes()[to_receiver].sum() == size_bytes + num_packets * header_bytes
    assert result.misdelivered == 0


@pytest.mark.parametrize("num_flows", [2, 3, 8])
def test_equal_flows_share_a_bottleneck_evenly(num_flows: int) -> None:
    size_bytes = 4_000_000
    result = emulated(dumbbell(num_flows))
    flows = [result.add_flow(five_tuple(result.fabric, f"h{n}", f"h{num_flows + n}")) for n in range(num_flows)]
    for flow in flows:
        result.start_transfer(flow, size_bytes)
    together_ps = ideal_ps(num_flows * size_bytes)
    advance(result, round(together_ps / 2))
    to_receivers = [result.fabric.reverse(result.fabric.nics[f"h{num_flows + n}"][0].link) for n in range(num_flows)]
    arrived = result.sent_bytes()[to_receivers].sum(axis=1)
    assert arrived == pytest.approx([size_bytes / 2] * num_flows, rel=0.05)
    times = completion_times(result, flows)
    assert list(times.values()) == pytest.approx([together_ps] * num_flows, rel=0.05)
    assert max(times.values()) == pytest.approx(together_ps, rel=0.005)


def test_higher_level_takes_the_whole_link_while_it_sends() -> None:
    result = emulated(dumbbell(2))
    low, high = (five_tuple(result.fabric, f"h{n}", f"h{2 + n}") for n in range(2))
    prioritise(result, high, 5)
    low_flow, high_flow = result.add_flow(low), result.add_flow(high)
    result.start_transfer(low_flow, 10_000_000)
    advance(result, 100_000_000)
    to_low = result.fabric.reverse(result.fabric.nics["h2"][0].link)
    result.start_transfer(high_flow, 5_000_000)
    advance(result, 120_000_000)
    before = result.sent_bytes()[to_low].sum()
    (completion,) = result.run(10**12)
    assert completion.flow == high_flow
    assert completion.time_ps - 100_000_000 == pytest.approx(ideal_ps(5_000_000), rel=0.01)
    # What was on its way, one packet that the high flow found on the link, and no more.
    assert result.sent_bytes()[to_low].sum() - before < 0.01 * 10_000_000
    times = completion_times(result, [low_flow])
    assert times[low_flow] == pytest.approx(ideal_ps(15_000_000), rel=0.01)


def test_new_level_lets_later_packets_of_a_flow_overtake_its_own() -> None:
    result = emulated(dumbbell(2), trace_rows=10_000)
    connections = [five_tuple(result.fabric, f"h{n}", f"h{2 + n}") for n in range(2)]
    flows = [result.add_flow(connection) for connection in connections]
    prioritise(result, connections[0], 3)
    prioritise(result, connections[1], 3)
    for flow in flows:
        result.start_transfer(flow, 2_000_000)
    advance(result, 50_000_000)
    assert not reordered(result.take_trace(), flows[0])
    result.switches["t0"].modify("ingress.flow", flow_key(connections[0]), ActionCall("ingress.prioritise", (6,)))
    completions = advance(result, 10**13)
    assert sorted(completion.flow for completion in completions) == flows
    assert completions[0].flow == flows[0]
    trace = result.take_trace()
    assert reordered(trace, flows[0])
    assert not reordered(trace, flows[1])
    assert {row.level for row in data_on_the_bottleneck(trace, flows[0])} == {3, 6}
    assert {row.level for row in data_on_the_bottleneck(trace, flows[1])} == {3}


def test_level_inserted_for_a_flow_in_flight_counts_from_the_next_packet() -> None:
    result = emulated(dumbbell(2), trace_rows=10_000)
    connections = [five_tuple(result.fabric, f"h{n}", f"h{2 + n}") for n in range(2)]
    flows = [result.add_flow(connection) for connection in connections]
    for flow in flows:
        result.start_transfer(flow, 1_000_000)
    advance(result, 50_000_000)
    prioritise(result, connections[1], 1)
    completions = advance(result, 10**13)
    assert [completion.flow for completion in completions] == [flows[1], flows[0]]
    packets = result.switches["t0"].direct_counter("ingress.flow", flow_key(connections[1])).packets
    arrivals = [
        row
        for row in data_on_the_bottleneck(result.take_trace(), flows[1], TraceKind.QUEUED)
        if row.time_ps > 50_000_000
    ]
    assert packets == len(arrivals) > 0
    assert {row.level for row in arrivals} == {1}


def test_acknowledgements_are_the_most_urgent_whatever_their_data_is() -> None:
    result = emulated(dumbbell(1), trace_rows=10_000)
    connection = five_tuple(result.fabric, "h0", "h1")
    prioritise(result, connection, 3)
    result.start_transfer(result.add_flow(connection), 1_000_000)
    advance(result, 10**12)
    levels: dict[str, set[int]] = {"h1": set(), "t1": set(), "t0": set()}
    for row in result.take_trace():
        if row.length == 64:
            levels[result.fabric.links[row.link].source].add(row.level)
    assert levels == {"h1": {8}, "t1": {8}, "t0": {8}}


def test_nic_keeps_the_order_that_the_host_was_told() -> None:
    """Two flows of one NIC: the wire shows no level, the NIC's queues keep it."""
    result = emulated(star(2))
    low, high = (result.add_flow(five_tuple(result.fabric, "h0", "h1", source_port=49152 + n)) for n in range(2))
    result.set_flow_level(high, 7)
    for flow in (low, high):
        result.start_transfer(flow, 1_000_000)
    assert [completion.flow for completion in advance(result, 10**12)] == [high, low]
    to_receiver = result.fabric.reverse(result.fabric.nics["h1"][0].link)
    assert result.sent_bytes()[to_receiver, 1:].sum() == 0


def test_nic_serves_its_flows_in_turn_wherever_their_packets_wait() -> None:
    """Of two flows of one NIC, one meets a third on a cable: it has half of the cable, and the other one the rest.

    In one queue of whole windows, the one whose packets wait at the cable would have less of the NIC.
    """
    fabric = dumbbell(3, host_gbps=100.0, bottleneck_gbps=60.0)
    result = emulated(fabric, HostOptions(window_packets=15), rate_scale=1000)
    ends = {"inside": ("h0", "h1"), "across": ("h0", "h3"), "other": ("h2", "h4")}
    flows = {name: result.add_flow(five_tuple(result.fabric, *between)) for name, between in ends.items()}
    for flow in flows.values():
        result.start_transfer(flow, 40_000_000)
    advance(result, 10**12)
    sent = {name: result.progress(flow).acknowledged * 4096 * 8 / 1e8 for name, flow in flows.items()}
    assert sent == {
        name: pytest.approx(rate, rel=0.05) for name, rate in (("inside", 0.7), ("across", 0.3), ("other", 0.3))
    }


def test_flow_takes_the_path_of_the_fabric_hash() -> None:
    fabric = ClosSpecification(
        kind="clos", tors=2, aggs=2, hosts_per_tor=1, host_link_gbps=100, uplink_gbps=100, uplinks_per_pair=2
    ).build()
    result, routing = emulated(fabric, trace_rows=1000), routing_of(fabric)
    connections = [five_tuple(fabric, "h0", "h1", source_port=49152 + number) for number in range(16)]
    flows = [result.add_flow(connection) for connection in connections]
    for flow in flows:
        result.start_transfer(flow, 1000)
    advance(result, 10**10)
    trace = result.take_trace()
    paths = [
        tuple(r.link for r in trace if r.kind is TraceKind.STARTED and r.flow == f and r.length > 64) for f in flows
    ]
    assert paths == [routing.hashed_path(connection) for connection in connections]
    assert len(set(paths)) > 4


def test_transfers_of_a_flow_follow_one_another() -> None:
    result = emulated(star(2), trace_rows=1000)
    flow = result.add_flow(five_tuple(result.fabric, "h0", "h1"))
    for size_bytes in (10_000, 1, 4096, 50_000):
        started_ps = result.now_ps
        result.start_transfer(flow, size_bytes)
        with pytest.raises(ValueError, match="flow 0 has not finished"):
            result.start_transfer(flow, 1)
        (completion,) = result.run(10**12)
        assert completion.flow == flow
        assert completion.time_ps == result.now_ps > started_ps
    assert result.run(10**13) == ()
    assert result.retransmissions(flow) == 0


def test_several_hundred_flows_at_once() -> None:
    result = emulated(star(3), trace_rows=100)
    flows = [result.add_flow(five_tuple(result.fabric, f"h{n % 2}", "h2", source_port=1024 + n)) for n in range(600)]
    assert flows == list(range(600))
    for flow in flows:
        result.start_transfer(flow, 5 * 4096)
    assert completion_times(result, flows).keys() == set(flows)
    assert result.misdelivered == 0


def test_misrouted_packets_are_counted_and_the_transfer_does_not_end() -> None:
    result = emulated(star(3))
    connection = five_tuple(result.fabric, "h0", "h1")
    port_of_h2 = result.fabric.links[result.fabric.nics["h2"][0].link].destination_port
    result.switches["s"].insert("ingress.flow", flow_key(connection), ActionCall("ingress.steer", (port_of_h2,)))
    flow = result.add_flow(connection)
    result.start_transfer(flow, 3 * 4096)
    assert advance(result, 6 * 10**10) == []
    assert result.misdelivered == 3
    result.switches["s"].delete("ingress.flow", flow_key(connection))
    assert completion_times(result, [flow])
    assert result.retransmissions(flow) >= 3


@pytest.mark.parametrize("size_bytes", [0, -1])
def test_transfer_without_bytes_is_refused(size_bytes: int) -> None:
    result = emulated(star(2))
    flow = result.add_flow(five_tuple(result.fabric, "h0", "h1"))
    with pytest.raises(ValueError, match=f"flow 0: a transfer has at least one byte, not {size_bytes}"):
        result.start_transfer(flow, size_bytes)
    result.start_transfer(flow, 1)
    assert completion_times(result, [flow])


def test_flow_of_unknown_addresses_or_protocol_is_refused() -> None:
    result = emulated(star(2))
    known = result.fabric.nics["h0"][0].address
    for source, destination in ((known, 1), (1, known)):
        with pytest.raises(ValueError, match=r"no NIC has the address of udp .*0\.0\.0\.1"):
            result.add_flow(FiveTuple(source, destination, UDP_PROTOCOL, 1, 1))
    with pytest.raises(ValueError, match="not protocol 1"):
        result.add_flow(five_tuple(result.fabric, "h0", "h1", protocol=1))
    assert result.add_flow(five_tuple(result.fabric, "h0", "h1")) == 0


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"mtu_bytes": 0}, "mtu_bytes must be in 1..9000, not 0"),
        ({"mtu_bytes": 9001}, "mtu_bytes must be in 1..9000, not 9001"),
        ({"window_packets": 63}, "not 4 and 63"),
        ({"window_packets": 3}, "not 4 and 3"),
        ({"acknowledge_every": 0}, "not 0 and 32"),
    ],
)
def test_bad_host_options_are_refused(options: dict[str, int], words: str) -> None:
    with pytest.raises(ValueError, match=words):
        HostOptions(**options)


def test_time_does_not_run_backwards() -> None:
    result = emulated(star(2))
    result.run(1000)
    assert result.now_ps == 1000
    with pytest.raises(ValueError, match="it is 1000 ps; time cannot run to 999 ps"):
        result.run(999)


def test_same_calls_give_the_same_trace() -> None:
    first, second = (busy() for _ in range(2))
    for result in (first, second):
        advance(result, 10**12)
    trace = first.take_trace()
    assert trace == second.take_trace()
    assert len(trace) > 1000


@pytest.mark.parametrize("step_ps", [999_983, 10_000_000])
def test_steps_do_not_change_a_run(step_ps: int) -> None:
    whole, stepped = busy(), busy()
    completions = advance(whole, 400_000_000)
    in_steps = []
    for until_ps in (*range(0, 400_000_000, step_ps), 400_000_000):
        in_steps += advance(stepped, until_ps)
        assert stepped.now_ps == until_ps
    assert in_steps == completions
    assert stepped.take_trace() == whole.take_trace()
    assert stepped.packet_hops == whole.packet_hops


def busy() -> EmulatedFabric:
    """Six flows of several levels that collide, lose packets and send them again."""
    result = emulated(dumbbell(3), queue_limit_bytes=60_000, trace_rows=500)
    for number in range(6):
        connection = five_tuple(result.fabric, f"h{number % 3}", f"h{3 + number // 2}", source_port=50_000 + number)
        prioritise(result, connection, number % 3)
        result.start_transfer(result.add_flow(connection), 150_000 + 10_000 * number)
    return result


def data_on_the_bottleneck(trace: list[TraceRow], flow: int, kind: TraceKind = TraceKind.STARTED) -> list[TraceRow]:
    """What the trace says of a flow's data packets at the cable between the switches of ``dumbbell(2)``."""
    (link,) = [link.index for link in dumbbell(2).links if (link.source, link.destination) == ("t0", "t1")]
    return [row for row in trace if (row.kind, row.link, row.flow) == (kind, link, flow) and row.length > 64]


def reordered(trace: list[TraceRow], flow: int) -> bool:
    """Whether packets of the flow overtake each other at the bottleneck."""
    numbers = [row.number for row in data_on_the_bottleneck(trace, flow)]
    return any(later < earlier for earlier, later in pairwise(numbers))
