"""The hosts' transport: reliable, a window of packets, selective acknowledgement.

A flow is one connection; transfers on it follow one another. The
receiver acknowledges every few packets, at once where a number is missing and at the end of a transfer, in the most
urgent class. Gaps that three later numbers have overtaken are sent again once. Where nothing is
acknowledged for a timeout the lowest number is, as a question: packets keep their order, so that what its answer does
not name is lost, and sent again at once (as in RFC 8985, 6.2 and 7; InfiniBand's timer, which does not double).
"""

import numpy as np
from numpy.typing import NDArray

from emulator.engine.events import NEVER_PS, schedule_timer
from emulator.engine.packets import octets_of, release_packet, take_packet
from emulator.engine.queues import enqueue, put_on_link
from emulator.engine.state import (
    ACKNOWLEDGEMENT,
    ANSWER,
    CAPTURE_LINK,
    CAPTURE_PACKET,
    CAPTURE_TIME_PS,
    CAPTURES,
    COMPLETIONS,
    CONTROL_PLANE,
    DATA,
    FLOW_ACKNOWLEDGE_EVERY,
    FLOW_ASKED,
    FLOW_DESTINATION_LINK,
    FLOW_EXPECTED,
    FLOW_HEADER_BYTES,
    FLOW_LAST,
    FLOW_LEVEL,
    FLOW_MTU_BYTES,
    FLOW_NEXT,
    FLOW_PROGRESS_PS,
    FLOW_RECEIVED,
    FLOW_RETRANSMISSIONS,
    FLOW_RETRANSMITTED,
    FLOW_SOURCE_LINK,
    FLOW_TAIL_BYTES,
    FLOW_TIMER_ARMED,
    FLOW_UNACKNOWLEDGED,
    FLOW_UNANSWERED,
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

TIMEOUT_PS = 4_096_000 << 14
"""4.096 us times 2^14, 67 ms: a queue pair's ack timeout (InfiniBand 9.7.6.1.3), as perftest sets it.

A lost tail waits for it too: a tail loss probe (RFC 8985) fails within the reaction delay and gains under 1 ms a flow.
"""

ACKNOWLEDGEMENT_BYTES = 64
ACKNOWLEDGEMENT_TOS = 56 << 2
"""CS7, the most urgent class: what is to be sent hangs on it, and it takes 0.4 % of its data's room."""

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
    fill_window(state, flow)
    if flows[flow, FLOW_TIMER_ARMED] == 0:
        flows[flow, FLOW_TIMER_ARMED] = 1
        schedule_timer(state, flow, state.scalars[NOW_PS] + TIMEOUT_PS)


@inlined
def fill_window(state: State, flow: int) -> None:
    """Send what the window allows."""
    flows = state.flows
    end = min(flows[flow, FLOW_LAST], flows[flow, FLOW_UNACKNOWLEDGED] + flows[flow, FLOW_WINDOW])
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
    write_headers(state, packet, flow, 0, flows[flow, FLOW_HEADER_BYTES] + payload, 0)
    enqueue(state, flows[flow, FLOW_SOURCE_LINK], packet, flows[flow, FLOW_LEVEL])


@inlined
def send_acknowledgement(state: State, flow: int, kind: Integer) -> None:
    """Tell the sender what has come, in the most urgent class; at the NIC it goes before all data."""
    flows = state.flows
    packet = take_packet(state)
    flows[flow, FLOW_UNANSWERED] = 0
    state.packets[packet, PACKET_KIND] = kind
    state.packets[packet, PACKET_NUMBER] = flows[flow, FLOW_EXPECTED]
    state.packets[packet, PACKET_RECEIVED] = flows[flow, FLOW_RECEIVED]
    write_headers(state, packet, flow, 1, ACKNOWLEDGEMENT_BYTES, ACKNOWLEDGEMENT_TOS)
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
        receive_data(state, flow, packet)
    else:
        receive_acknowledgement(state, flow, packet)
    release_packet(state, packet)


@inlined
def receive_data(state: State, flow: int, packet: int) -> None:
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
    complete = in_order and expected == flows[flow, FLOW_LAST]
    asks_for_answer = state.packets[packet, PACKET_RECEIVED] == 1
    # The packet that fills the last gap too: the sender may have its whole window in flight and wait for this.
    is_urgent = complete or not in_order or had_gaps or asks_for_answer
    if is_urgent or flows[flow, FLOW_UNANSWERED] >= flows[flow, FLOW_ACKNOWLEDGE_EVERY]:
        send_acknowledgement(state, flow, ANSWER if asks_for_answer else ACKNOWLEDGEMENT)
    if complete:
        row = state.scalars[COMPLETIONS]
        state.completions[row, 0], state.completions[row, 1] = flow, state.scalars[NOW_PS]
        state.scalars[COMPLETIONS] += 1


@inlined
def receive_acknowledgement(state: State, flow: int, packet: int) -> None:
    """The sender's side of an acknowledgement: where packets were lost nothing new is sent before all of them."""
    flows, expected = state.flows, state.packets[packet, PACKET_NUMBER]
    received = state.packets[packet, PACKET_RECEIVED]
    if expected < flows[flow, FLOW_UNACKNOWLEDGED]:
        return
    if expected > flows[flow, FLOW_UNACKNOWLEDGED]:
        flows[flow, FLOW_UNACKNOWLEDGED] = expected
        flows[flow, FLOW_PROGRESS_PS] = state.scalars[NOW_PS]
    sent_before_question = flows[flow, FLOW_ASKED] if state.packets[packet, PACKET_KIND] == ANSWER else 0
    send_lost(state, flow, expected, received, sent_before_question)
    if not is_overtaken(received):
        fill_window(state, flow)


@inlined
def send_lost(state: State, flow: int, expected: int, received: int, end: int) -> None:
    """Send again, once each, the numbers below ``end`` that have not come; else the first that is overtaken.

    One for an acknowledgement is one for a packet that has left the queues, in which what is overtaken was lost.
    """
    flows, number, later = state.flows, expected, received
    while number < end or is_overtaken(later):
        if number > flows[flow, FLOW_RETRANSMITTED]:
            send_again(state, flow, number, 0)
            if number >= end:
                return
        number += 1
        while later & 1:
            number += 1
            later >>= 1
        later >>= 1


@inlined
def is_overtaken(later: int) -> bool:
    """Whether three or more bits are set: so many later packets have come."""
    later &= later - 1
    return later & (later - 1) != 0


@inlined
def send_again(state: State, flow: int, number: int, asks_for_answer: int) -> None:
    """Send a number that may be lost, and remember that all up to it have been."""
    state.flows[flow, FLOW_RETRANSMITTED] = number
    state.flows[flow, FLOW_RETRANSMISSIONS] += 1
    send_data(state, flow, number, asks_for_answer)


@inlined
def time_out(state: State, flow: int) -> None:
    """The timer of a flow has run down: ask what has come, where nothing has been acknowledged for the timeout."""
    flows, now_ps = state.flows, state.scalars[NOW_PS]
    if flows[flow, FLOW_UNACKNOWLEDGED] == flows[flow, FLOW_LAST]:
        flows[flow, FLOW_TIMER_ARMED] = 0
        schedule_timer(state, flow, NEVER_PS)
        return
    if flows[flow, FLOW_PROGRESS_PS] + TIMEOUT_PS <= now_ps:
        flows[flow, FLOW_PROGRESS_PS] = now_ps
        flows[flow, FLOW_ASKED] = flows[flow, FLOW_NEXT]
        send_again(state, flow, flows[flow, FLOW_UNACKNOWLEDGED], 1)
    schedule_timer(state, flow, flows[flow, FLOW_PROGRESS_PS] + TIMEOUT_PS)
