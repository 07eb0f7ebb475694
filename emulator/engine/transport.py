"""Transport of the hosts: reliable, with a fixed window and selective acknowledgement.

A flow is one connection; its transfers follow one another. The receiver acknowledges every few packets in the most
urgent class, and at once for a missing number and at the end of a transfer. The sender resends gaps that three later
numbers have overtaken, once. If nothing is acknowledged for a timeout, it resends the lowest unacknowledged number as a
question. Packets keep their order, so the numbers missing from the answer are lost and are resent at once (as in RFC
8985, 6.2 and 7; the timer is InfiniBand's, which does not double).
"""

from collections.abc import Callable
from typing import Any, cast

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
    FLOW_HAS_GAPS,
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
    FLOW_WAITING,
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
    PACKET_MARKS,
    PACKET_NUMBER,
    PACKET_RECEIVED,
    PACKET_STORED,
    PARSE_BYTES,
    QUESTION,
    RAW,
    TEMPLATE,
    Integer,
    State,
)
from emulator.jit import compiled, inlined
from emulator.native.callable import kind_of

Receive = Callable[[State, int, int], None]

MAX_WINDOW = 62
"""Maximum packets in flight: the receiver's bitmap of arrived packets is one word."""

TIMEOUT_PS = 4_096_000 << 14
"""4.096 us times 2^14, 67 ms: the ack timeout of a queue pair (InfiniBand 9.7.6.1.3) that perftest sets.

A lost tail waits for it too: a tail loss probe (RFC 8985) fails within the reaction delay and gains under 1 ms a flow.
"""

ACKNOWLEDGEMENT_BYTES = 64
ACKNOWLEDGEMENT_TOS = 56 << 2
"""CS7, the most urgent class: further data waits for acknowledgements, and they take 0.4 % of its bandwidth."""

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
    """Let a packet of no flow arrive now at the end of a link."""
    packet = take_packet(state)
    at = octets_of(state, packet)
    for index in range(OCTETS):
        state.octets[at + index] = octets[index] if index < len(octets) else 0
    state.packets[packet, PACKET_FLOW] = NONE
    state.packets[packet, PACKET_KIND] = RAW
    state.packets[packet, PACKET_NUMBER] = NONE
    state.packets[packet, PACKET_LENGTH] = length
    # The program may change all that it may parse.
    state.packets[packet, PACKET_STORED] = max(len(octets), min(length, state.scalars[PARSE_BYTES]))
    put_on_link(state, link, packet, state.scalars[NOW_PS])


def compile_inject(state: State) -> None:
    """Compile ``inject`` for a state, without a packet."""
    arguments = state, 0, np.zeros(0, dtype=np.uint8), 0
    cast(Any, inject).compile(tuple(map(kind_of, arguments)))


@compiled
def begin_transfer(state: State, flow: int, num_packets: int, tail_bytes: int) -> None:
    """Send ``num_packets`` packets, the last with ``tail_bytes`` of payload; the previous transfer is complete."""
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
    """Send the next packet of the window if no packet of the flow waits at its NIC, which serves flows in turn."""
    flows = state.flows
    end = min(flows[flow, FLOW_LAST], flows[flow, FLOW_UNACKNOWLEDGED] + flows[flow, FLOW_WINDOW])
    while flows[flow, FLOW_NEXT] < end and flows[flow, FLOW_WAITING] == 0:
        send_data(state, flow, flows[flow, FLOW_NEXT], 0, 0)
        flows[flow, FLOW_NEXT] += 1


@inlined
def leave_nic(state: State, packet: int) -> None:
    """Let the next packet of a flow join the queue when one leaves it."""
    flow = state.packets[packet, PACKET_FLOW]
    if flow != NONE and state.packets[packet, PACKET_KIND] == DATA:
        state.flows[flow, FLOW_WAITING] -= 1
        if not state.flows[flow, FLOW_HAS_GAPS]:
            fill_window(state, flow)


@inlined
def send_data(state: State, flow: int, number: Integer, request: int, tos: Integer) -> None:
    """Put one packet of a flow into its level's queue at the sending NIC."""
    flows = state.flows
    payload = flows[flow, FLOW_TAIL_BYTES] if number == flows[flow, FLOW_LAST] - 1 else flows[flow, FLOW_MTU_BYTES]
    packet = take_packet(state)
    state.packets[packet, PACKET_KIND] = DATA
    state.packets[packet, PACKET_RECEIVED] = request
    state.packets[packet, PACKET_NUMBER] = number
    write_headers(state, packet, flow, 0, flows[flow, FLOW_HEADER_BYTES] + payload, tos)
    flows[flow, FLOW_WAITING] += 1
    enqueue(state, flows[flow, FLOW_SOURCE_LINK], packet, flows[flow, FLOW_LEVEL])


@inlined
def send_acknowledgement(state: State, flow: int, kind: Integer, marks: Integer) -> None:
    """Send an acknowledgement in the most urgent class; at the NIC it precedes all data."""
    flows = state.flows
    packet = take_packet(state)
    flows[flow, FLOW_UNANSWERED] = 0
    state.packets[packet, PACKET_KIND] = kind
    state.packets[packet, PACKET_NUMBER] = flows[flow, FLOW_EXPECTED]
    state.packets[packet, PACKET_RECEIVED] = flows[flow, FLOW_RECEIVED]
    state.packets[packet, PACKET_MARKS] = marks
    write_headers(state, packet, flow, 1, ACKNOWLEDGEMENT_BYTES, ACKNOWLEDGEMENT_TOS)
    enqueue(state, flows[flow, FLOW_DESTINATION_LINK], packet, LEVELS)


@inlined
def write_headers(state: State, packet: int, flow: int, direction: int, length: int, tos: Integer) -> None:
    """Write a packet's bytes from the flow's template, with its own lengths, class and IPv4 checksum."""
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
def receive_unmarked_data(state: State, flow: int, packet: int) -> None:
    """Process a data packet at a receiver that ignores marks."""
    receive_data(state, flow, packet, 0)


@inlined
def receive_data(state: State, flow: int, packet: int, marks: Integer) -> None:
    """Process a data packet at the receiver; acknowledgements tell so many marks."""
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
    request = state.packets[packet, PACKET_RECEIVED]
    # Acknowledge the packet that fills the last gap at once: the sender may have its whole window in flight.
    is_urgent = complete or not in_order or had_gaps or request != 0
    if is_urgent or flows[flow, FLOW_UNANSWERED] >= flows[flow, FLOW_ACKNOWLEDGE_EVERY]:
        send_acknowledgement(state, flow, ANSWER if request == QUESTION else ACKNOWLEDGEMENT, marks)
    if complete:
        row = state.scalars[COMPLETIONS]
        state.completions[row, 0], state.completions[row, 1] = flow, state.scalars[NOW_PS]
        state.scalars[COMPLETIONS] += 1


@inlined
def receive_acknowledgement(state: State, flow: int, packet: int) -> None:
    """Process an acknowledgement at the sender; it resends lost packets before it sends new ones."""
    flows, expected = state.flows, state.packets[packet, PACKET_NUMBER]
    received = state.packets[packet, PACKET_RECEIVED]
    if expected < flows[flow, FLOW_UNACKNOWLEDGED]:
        return
    if expected > flows[flow, FLOW_UNACKNOWLEDGED]:
        flows[flow, FLOW_UNACKNOWLEDGED] = expected
        flows[flow, FLOW_PROGRESS_PS] = state.scalars[NOW_PS]
    sent_before_question = flows[flow, FLOW_ASKED] if state.packets[packet, PACKET_KIND] == ANSWER else 0
    send_lost(state, flow, expected, received, sent_before_question)
    flows[flow, FLOW_HAS_GAPS] = is_overtaken(received)
    if not flows[flow, FLOW_HAS_GAPS]:
        fill_window(state, flow)


def delivery(receive_data: Receive, receive_acknowledgement: Receive) -> Receive:
    """Return the function that processes a packet of which the NIC at the end of a link is reached."""

    @inlined
    def deliver(state: State, link: int, packet: int) -> None:
        """Process a packet that has reached the NIC at the end of a link."""
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

    return deliver


deliver = delivery(receive_unmarked_data, receive_acknowledgement)


@inlined
def send_lost(state: State, flow: int, expected: int, received: int, end: int) -> None:
    """Resend every missing number below ``end`` once; otherwise the first one that was overtaken.

    One retransmission for each acknowledgement is one for each packet that has left the queues.
    """
    flows, number, later = state.flows, expected, received
    while number < end or is_overtaken(later):
        if number > flows[flow, FLOW_RETRANSMITTED]:
            send_again(state, flow, number, 0, 0)
            if number >= end:
                return
        number += 1
        while later & 1:
            number += 1
            later >>= 1
        later >>= 1


@inlined
def is_overtaken(later: int) -> bool:
    """Return whether three or more bits are set: that many later packets have arrived."""
    later &= later - 1
    return later & (later - 1) != 0


@inlined
def send_again(state: State, flow: int, number: Integer, request: int, tos: Integer) -> None:
    """Resend a number, and record that all numbers up to it have been resent."""
    state.flows[flow, FLOW_RETRANSMITTED] = number
    state.flows[flow, FLOW_RETRANSMISSIONS] += 1
    send_data(state, flow, number, request, tos)


@inlined
def time_out(state: State, flow: int) -> None:
    """Handle an expired timer: ask what has arrived if nothing was acknowledged for the timeout."""
    flows, now_ps = state.flows, state.scalars[NOW_PS]
    if flows[flow, FLOW_UNACKNOWLEDGED] == flows[flow, FLOW_LAST]:
        flows[flow, FLOW_TIMER_ARMED] = 0
        schedule_timer(state, flow, NEVER_PS)
        return
    if flows[flow, FLOW_PROGRESS_PS] + TIMEOUT_PS <= now_ps:
        flows[flow, FLOW_PROGRESS_PS] = now_ps
        flows[flow, FLOW_ASKED] = flows[flow, FLOW_NEXT]
        send_again(state, flow, flows[flow, FLOW_UNACKNOWLEDGED], QUESTION, 0)
    schedule_timer(state, flow, flows[flow, FLOW_PROGRESS_PS] + TIMEOUT_PS)
