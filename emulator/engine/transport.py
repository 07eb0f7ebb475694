"""The hosts' transport: reliable, a window of packets, selective acknowledgement.

A flow is one connection; transfers on it follow one another. The window is
narrow where switches mark congestion, and widens where they do not. The
receiver acknowledges every few packets, at once where a number is missing and at the end of a transfer, with the class
(DSCP) the data came with. A gap that three later numbers have overtaken is sent again once; anything else after a
timeout that doubles.
"""

import numpy as np
from numpy.typing import NDArray

from emulator.engine.events import NEVER_PS, schedule_timer
from emulator.engine.packets import octets_of, release_packet, take_packet
from emulator.engine.queues import enqueue, put_on_link
from emulator.engine.state import (
    ACKNOWLEDGEMENT,
    CAPTURE_LINK,
    CAPTURE_PACKET,
    CAPTURE_TIME_PS,
    CAPTURES,
    COMPLETIONS,
    CONTROL_PLANE,
    DATA,
    FLOW_ACKNOWLEDGE_EVERY,
    FLOW_DESTINATION_LINK,
    FLOW_EXPECTED,
    FLOW_HEADER_BYTES,
    FLOW_LAST,
    FLOW_LEVEL,
    FLOW_MARKED,
    FLOW_MTU_BYTES,
    FLOW_NEXT,
    FLOW_OPEN_WINDOW,
    FLOW_PROGRESS_PS,
    FLOW_RECEIVED,
    FLOW_RETRANSMISSIONS,
    FLOW_RETRANSMITTED,
    FLOW_ROUND_END,
    FLOW_ROUND_MARKED,
    FLOW_SOURCE_LINK,
    FLOW_TAIL_BYTES,
    FLOW_TIMEOUT_PS,
    FLOW_TIMER_ARMED,
    FLOW_UNACKNOWLEDGED,
    FLOW_UNANSWERED,
    FLOW_WIDEST_WINDOW,
    FLOW_WINDOW,
    LEVELS,
    LINK_ADDRESS,
    MISDELIVERED,
    NONE,
    NOW_PS,
    OCTETS,
    PACKET_FLOW,
    PACKET_KIND,
    PACKET_LENGTH,
    PACKET_MARKED,
    PACKET_NUMBER,
    PACKET_RECEIVED,
    PACKET_STORED,
    PARSE_BYTES,
    RAW,
    TEMPLATE,
    Integer,
    State,
)
from emulator.jit import compiled, inlined

MAX_WINDOW = 62
"""Packets in flight at most: the receiver's picture of what has come is one word."""

FIRST_TIMEOUT_PS = 200_000_000_000
LAST_TIMEOUT_PS = 4_000_000_000_000
OVERTAKEN_BY = 3
ACKNOWLEDGEMENT_BYTES = 64

ECN_CAPABLE = 2
_ECN, _CONGESTION_EXPERIENCED, _CLASS = 3, 3, 0xFC

_IPV4 = 14
_TOS = _IPV4 + 1
_TOTAL_LENGTH = _IPV4 + 2
_CHECKSUM = _IPV4 + 10
_SOURCE = _IPV4 + 12
_DESTINATION = _IPV4 + 16
_UDP_LENGTH = 38
_UDP_HEADERS = 42


@compiled
def inject(state: State, link: int, octets: NDArray[np.uint8], length: int) -> None:
    """Let a packet that no flow owns arrive now at the end of a link."""
    packet = take_packet(state)
    at = octets_of(state, packet)
    for index in range(OCTETS):
        state.octets[at + index] = octets[index] if index < len(octets) else 0
    state.packets[packet, PACKET_FLOW] = NONE
    state.packets[packet, PACKET_KIND] = RAW
    state.packets[packet, PACKET_NUMBER] = NONE
    state.packets[packet, PACKET_LENGTH] = length
    # What the program may parse it may also change.
    state.packets[packet, PACKET_STORED] = max(len(octets), min(length, state.scalars[PARSE_BYTES]))
    put_on_link(state, link, packet, state.scalars[NOW_PS])


@compiled
def begin_transfer(state: State, flow: int, num_packets: int, tail_bytes: int) -> None:
    """Send ``num_packets`` more packets, the last with ``tail_bytes`` of payload; the one before has been delivered."""
    flows = state.flows
    flows[flow, FLOW_LAST] += num_packets
    flows[flow, FLOW_TAIL_BYTES] = tail_bytes
    flows[flow, FLOW_PROGRESS_PS] = state.scalars[NOW_PS]
    flows[flow, FLOW_TIMEOUT_PS] = FIRST_TIMEOUT_PS
    fill_window(state, flow)
    if flows[flow, FLOW_TIMER_ARMED] == 0:
        flows[flow, FLOW_TIMER_ARMED] = 1
        schedule_timer(state, flow, state.scalars[NOW_PS] + FIRST_TIMEOUT_PS)


@inlined
def fill_window(state: State, flow: int) -> None:
    """Send what the window allows."""
    flows = state.flows
    end = min(flows[flow, FLOW_LAST], flows[flow, FLOW_UNACKNOWLEDGED] + flows[flow, FLOW_OPEN_WINDOW])
    while flows[flow, FLOW_NEXT] < end:
        send_data(state, flow, flows[flow, FLOW_NEXT], 0)
        flows[flow, FLOW_NEXT] += 1


@inlined
def send_data(state: State, flow: int, number: int, asks_for_answer: int) -> None:
    """Put one packet of a flow into the queue of its level at the sending NIC."""
    flows = state.flows
    payload = flows[flow, FLOW_TAIL_BYTES] if number == flows[flow, FLOW_LAST] - 1 else flows[flow, FLOW_MTU_BYTES]
    packet = take_packet(state)
    state.packets[packet, PACKET_KIND] = DATA
    state.packets[packet, PACKET_RECEIVED] = asks_for_answer
    state.packets[packet, PACKET_NUMBER] = number
    write_headers(state, packet, flow, 0, flows[flow, FLOW_HEADER_BYTES] + payload, ECN_CAPABLE)
    enqueue(state, flows[flow, FLOW_SOURCE_LINK], packet, flows[flow, FLOW_LEVEL])


@inlined
def send_acknowledgement(state: State, flow: int, tos: Integer) -> None:
    """Tell the sender what has come, in the class that the data came with; at the NIC it goes before all data."""
    flows = state.flows
    packet = take_packet(state)
    state.packets[packet, PACKET_MARKED] = flows[flow, FLOW_MARKED]
    flows[flow, FLOW_UNANSWERED] = 0
    flows[flow, FLOW_MARKED] = 0
    state.packets[packet, PACKET_KIND] = ACKNOWLEDGEMENT
    state.packets[packet, PACKET_NUMBER] = flows[flow, FLOW_EXPECTED]
    state.packets[packet, PACKET_RECEIVED] = flows[flow, FLOW_RECEIVED]
    write_headers(state, packet, flow, 1, ACKNOWLEDGEMENT_BYTES, tos & _CLASS)
    enqueue(state, flows[flow, FLOW_DESTINATION_LINK], packet, LEVELS)


@inlined
def write_headers(state: State, packet: int, flow: int, direction: int, length: int, tos: Integer) -> None:
    """Fill in a packet's bytes from the flow's template: lengths, class and IPv4 checksum are its own."""
    octets, template, at = state.octets, state.templates[flow, direction], octets_of(state, packet)
    stored = state.flows[flow, FLOW_HEADER_BYTES]
    for index in range(TEMPLATE):
        octets[at + index] = template[index]
    for index in range(TEMPLATE, state.scalars[PARSE_BYTES]):
        octets[at + index] = 0
    total = length - _IPV4
    octets[at + _TOS] = tos
    octets[at + _TOTAL_LENGTH] = total >> 8
    octets[at + _TOTAL_LENGTH + 1] = total & 0xFF
    if stored == _UDP_HEADERS:
        octets[at + _UDP_LENGTH] = (total - 20) >> 8
        octets[at + _UDP_LENGTH + 1] = (total - 20) & 0xFF
    checksum = np.int64(0)
    for index in range(at + _IPV4, at + _IPV4 + 20, 2):
        checksum += np.int64(octets[index]) << 8 | np.int64(octets[index + 1])
    checksum = (checksum & 0xFFFF) + (checksum >> 16)
    checksum = ~((checksum & 0xFFFF) + (checksum >> 16))
    octets[at + _CHECKSUM] = checksum >> 8 & 0xFF
    octets[at + _CHECKSUM + 1] = checksum & 0xFF
    state.packets[packet, PACKET_FLOW] = flow
    state.packets[packet, PACKET_LENGTH] = length
    state.packets[packet, PACKET_STORED] = stored


@inlined
def deliver(state: State, link: int, packet: int) -> None:
    """A packet has reached the NIC at the end of a link."""
    flow = state.packets[packet, PACKET_FLOW]
    if flow == NONE or state.links[link, LINK_ADDRESS] == CONTROL_PLANE:
        row = state.scalars[CAPTURES]
        state.captures[row, CAPTURE_LINK] = link
        state.captures[row, CAPTURE_PACKET] = packet
        state.captures[row, CAPTURE_TIME_PS] = state.scalars[NOW_PS]
        state.scalars[CAPTURES] += 1
        return
    octets, at = state.octets, octets_of(state, packet)
    address = np.int64(0)
    for index in range(4):
        address = address << 8 | np.int64(octets[at + _DESTINATION + index])
    if address != state.links[link, LINK_ADDRESS]:
        state.scalars[MISDELIVERED] += 1
    elif state.packets[packet, PACKET_KIND] == DATA:
        receive_data(state, flow, packet, np.int64(octets[at + _TOS]))
    else:
        adapt_window(state, flow, packet)
        receive_acknowledgement(
            state, flow, state.packets[packet, PACKET_NUMBER], state.packets[packet, PACKET_RECEIVED]
        )
    release_packet(state, packet)


@inlined
def receive_data(state: State, flow: int, packet: int, tos: Integer) -> None:
    """The receiver's side of a data packet."""
    flows, number = state.flows, state.packets[packet, PACKET_NUMBER]
    expected, received = flows[flow, FLOW_EXPECTED], flows[flow, FLOW_RECEIVED]
    in_order = number == expected
    had_gaps = received != 0
    if in_order:
        expected += 1
        while received & 1:
            expected += 1
            received >>= 1
        received >>= 1
    elif number > expected:
        received |= np.int64(1) << (number - expected - 1)
    flows[flow, FLOW_EXPECTED] = expected
    flows[flow, FLOW_RECEIVED] = received
    flows[flow, FLOW_UNANSWERED] += 1
    if tos & _ECN == _CONGESTION_EXPERIENCED:
        flows[flow, FLOW_MARKED] += 1
    complete = in_order and expected == flows[flow, FLOW_LAST]
    # The packet that fills the last gap too: the sender may have its whole window in flight and wait for this.
    is_urgent = complete or not in_order or had_gaps or state.packets[packet, PACKET_RECEIVED] == 1
    if is_urgent or flows[flow, FLOW_UNANSWERED] >= flows[flow, FLOW_ACKNOWLEDGE_EVERY]:
        send_acknowledgement(state, flow, tos)
    if complete:
        row = state.scalars[COMPLETIONS]
        state.completions[row, 0], state.completions[row, 1] = flow, state.scalars[NOW_PS]
        state.scalars[COMPLETIONS] += 1


@inlined
def adapt_window(state: State, flow: int, packet: int) -> None:
    """Once a round: back to the flow's own window where packets were marked, else one packet more.

    Its own window fills an empty way. Flows that share a congested link are all marked and all have that one, so that
    they share evenly; who meets no congestion may have more in flight, and rides out acknowledgements that wait on
    their way back behind other flows' data.
    """
    flows = state.flows
    flows[flow, FLOW_ROUND_MARKED] += state.packets[packet, PACKET_MARKED]
    if state.packets[packet, PACKET_NUMBER] < flows[flow, FLOW_ROUND_END]:
        return
    if flows[flow, FLOW_ROUND_MARKED] > 0:
        flows[flow, FLOW_OPEN_WINDOW] = flows[flow, FLOW_WINDOW]
    elif flows[flow, FLOW_OPEN_WINDOW] < flows[flow, FLOW_WIDEST_WINDOW]:
        flows[flow, FLOW_OPEN_WINDOW] += 1
    flows[flow, FLOW_ROUND_END] = flows[flow, FLOW_NEXT]
    flows[flow, FLOW_ROUND_MARKED] = 0


@inlined
def receive_acknowledgement(state: State, flow: int, expected: int, received: int) -> None:
    """The sender's side of an acknowledgement."""
    flows = state.flows
    if expected > flows[flow, FLOW_UNACKNOWLEDGED]:
        flows[flow, FLOW_UNACKNOWLEDGED] = expected
        flows[flow, FLOW_PROGRESS_PS] = state.scalars[NOW_PS]
        flows[flow, FLOW_TIMEOUT_PS] = FIRST_TIMEOUT_PS
    elif expected < flows[flow, FLOW_UNACKNOWLEDGED]:
        return
    overtaking, seen = 0, received
    while seen and overtaking < OVERTAKEN_BY:
        seen &= seen - 1
        overtaking += 1
    if overtaking == OVERTAKEN_BY and expected > flows[flow, FLOW_RETRANSMITTED]:
        flows[flow, FLOW_RETRANSMITTED] = expected
        flows[flow, FLOW_RETRANSMISSIONS] += 1
        send_data(state, flow, expected, 1)
    fill_window(state, flow)


@inlined
def time_out(state: State, flow: int) -> None:
    """The timer of a flow has run down: send the lowest number again where nothing has moved for the timeout."""
    flows, now_ps = state.flows, state.scalars[NOW_PS]
    if flows[flow, FLOW_UNACKNOWLEDGED] == flows[flow, FLOW_LAST]:
        flows[flow, FLOW_TIMER_ARMED] = 0
        schedule_timer(state, flow, NEVER_PS)
        return
    due_ps = flows[flow, FLOW_PROGRESS_PS] + flows[flow, FLOW_TIMEOUT_PS]
    if due_ps <= now_ps:
        flows[flow, FLOW_RETRANSMISSIONS] += 1
        send_data(state, flow, flows[flow, FLOW_UNACKNOWLEDGED], 1)
        flows[flow, FLOW_PROGRESS_PS] = now_ps
        flows[flow, FLOW_TIMEOUT_PS] = min(2 * flows[flow, FLOW_TIMEOUT_PS], LAST_TIMEOUT_PS)
        due_ps = now_ps + flows[flow, FLOW_TIMEOUT_PS]
    schedule_timer(state, flow, due_ps)
