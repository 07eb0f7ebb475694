"""Transport of the hosts whose flows have a congestion control (``emulator.congestion``).

Receivers, acknowledgements and the timer are those of ``emulator.engine.transport``; here are the senders. The control
gives the window, and what is in flight is the pipe of RFC 6675: a packet leaves it when it has arrived, in order or
not, and when three later ones have arrived without it. Whatever is lost is sent again first. The last packet that a
window allows, and every packet of a small window, asks to be acknowledged at once, as RoCE's AckReq does; else the
receiver would wait for more packets and the sender for an acknowledgement.
Acknowledgements count the marked packets (RFC 9768).

A flow without a control sends as in a program without controls.
"""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from emulator.congestion.control import Event, Reaction, Words
from emulator.engine import transport
from emulator.engine.events import NEVER_PS, schedule_timer
from emulator.engine.packets import octets_of
from emulator.engine.state import (
    ANSWER,
    DATA,
    FLOW_ACKNOWLEDGE_EVERY,
    FLOW_ASKED,
    FLOW_LAST,
    FLOW_NEXT,
    FLOW_PROGRESS_PS,
    FLOW_RETRANSMITTED,
    FLOW_TAIL_BYTES,
    FLOW_TIMER_ARMED,
    FLOW_UNACKNOWLEDGED,
    FLOW_WAITING,
    NONE,
    NOW_PS,
    PACKET_FLOW,
    PACKET_KIND,
    PACKET_MARKS,
    PACKET_NUMBER,
    PACKET_RECEIVED,
    QUESTION,
    RECEIVER_MARKED,
    SENDER_ARRIVED,
    SENDER_CONTROL,
    SENDER_DELIVERED,
    SENDER_HAS_STARTED,
    SENDER_IS_LIMITED,
    SENDER_IS_RECOVERING,
    SENDER_LAST_SENT_PS,
    SENDER_LOST_END,
    SENDER_MARKED,
    SENDER_NEWEST,
    SENDER_RECOVERY_END,
    SENDER_RTT_PS,
    SENDER_SENT_PS,
    SENDER_TIMEOUTS,
    SENDER_TOS,
    URGENT,
    WINDOW,
    Integer,
    State,
)
from emulator.engine.transport import MAX_WINDOW, TIMEOUT_PS, Receive, delivery
from emulator.jit import inlined, separate

ECT_0, CE = 2, 3
"""ECN codepoints of the IPv4 header (RFC 3168)."""

SMALLEST_WINDOW = 1e-4

_S_PER_PS = 1e-12
_TOS = 15  # of a packet's bytes
_SENT_MASK = 63

Functions = tuple[Reaction, Reaction, Reaction, Reaction]


class Transport(NamedTuple):
    """The functions of a transport that the event loop and the fabric call."""

    deliver: Receive
    leave_nic: Callable[[State, int], None]
    time_out: Callable[[State, int], None]
    begin: Callable[[State, int, int, int], None]


def controlled(controls: tuple[Functions, ...]) -> Transport:
    """Return the transport with these controls compiled in; flows name them by their index."""
    start, on_acknowledgement, on_loss, on_timeout = map(_choice, zip(*controls, strict=True))

    @separate
    def acknowledge(state: State, flow: int, packet: int) -> None:
        """Process an acknowledgement at the sender."""
        flows, senders, expected = state.flows, state.senders, state.packets[packet, PACKET_NUMBER]
        if expected < flows[flow, FLOW_UNACKNOWLEDGED]:
            return
        arrived = state.packets[packet, PACKET_RECEIVED]
        if expected > flows[flow, FLOW_UNACKNOWLEDGED]:
            flows[flow, FLOW_UNACKNOWLEDGED] = expected
            flows[flow, FLOW_PROGRESS_PS] = state.scalars[NOW_PS]
        else:
            arrived |= senders[flow, SENDER_ARRIVED]
        senders[flow, SENDER_ARRIVED] = arrived
        delivered = max(np.int64(0), expected + ones(arrived) - senders[flow, SENDER_DELIVERED])
        senders[flow, SENDER_DELIVERED] += delivered
        marked = max(np.int64(0), state.packets[packet, PACKET_MARKS] - senders[flow, SENDER_MARKED])
        senders[flow, SENDER_MARKED] += marked
        rtt_ps = sample_rtt(state, flow)
        if state.packets[packet, PACKET_KIND] == ANSWER:
            senders[flow, SENDER_LOST_END] = max(senders[flow, SENDER_LOST_END], flows[flow, FLOW_ASKED])
        senders[flow, SENDER_LOST_END] = max(senders[flow, SENDER_LOST_END], overtaken_end(state, flow))
        if expected >= senders[flow, SENDER_RECOVERY_END]:
            senders[flow, SENDER_IS_RECOVERING] = 0
        first = max(expected, senders[flow, SENDER_RECOVERY_END])
        has_lost = missing_number(state, flow, first, senders[flow, SENDER_LOST_END]) != NONE
        if has_lost:
            senders[flow, SENDER_IS_RECOVERING] = 1
            senders[flow, SENDER_RECOVERY_END] = flows[flow, FLOW_NEXT]
        control, words = senders[flow, SENDER_CONTROL], state.windows[flow, WINDOW + 1 :]
        event = event_of(state, flow, delivered, marked, rtt_ps)
        set_window(state, flow, on_acknowledgement(control, words, event))
        if has_lost:
            event = event_of(state, flow, delivered, marked, rtt_ps)
            set_window(state, flow, on_loss(control, words, event))
        senders[flow, SENDER_IS_LIMITED] = 0
        fill(state, flow)

    @separate
    def expire(state: State, flow: int) -> None:
        """Handle an expired timer: send what pacing has held back, or ask what has arrived."""
        flows, senders, now_ps = state.flows, state.senders, state.scalars[NOW_PS]
        if flows[flow, FLOW_UNACKNOWLEDGED] == flows[flow, FLOW_LAST]:
            flows[flow, FLOW_TIMER_ARMED] = 0
            schedule_timer(state, flow, NEVER_PS)
            return
        if flows[flow, FLOW_PROGRESS_PS] + TIMEOUT_PS <= now_ps:
            flows[flow, FLOW_PROGRESS_PS] = now_ps
            if flows[flow, FLOW_NEXT] > flows[flow, FLOW_UNACKNOWLEDGED]:
                senders[flow, SENDER_TIMEOUTS] += 1
                senders[flow, SENDER_IS_RECOVERING] = 0
                event = event_of(state, flow, 0, 0, 0)
                words = state.windows[flow, WINDOW + 1 :]
                set_window(state, flow, on_timeout(senders[flow, SENDER_CONTROL], words, event))
                flows[flow, FLOW_ASKED] = senders[flow, SENDER_RECOVERY_END] = flows[flow, FLOW_NEXT]
                senders[flow, SENDER_LOST_END] = 0
                send_again(state, flow, flows[flow, FLOW_UNACKNOWLEDGED], QUESTION)
        schedule_timer(state, flow, flows[flow, FLOW_PROGRESS_PS] + TIMEOUT_PS)
        fill(state, flow)

    @separate
    def start_sending(state: State, flow: int, num_packets: int, tail_bytes: int) -> None:
        """Begin a transfer with the window that the last one has left."""
        flows, senders = state.flows, state.senders
        if senders[flow, SENDER_HAS_STARTED] == 0:
            senders[flow, SENDER_HAS_STARTED] = 1
            event, words = event_of(state, flow, 0, 0, 0), state.windows[flow, WINDOW + 1 :]
            set_window(state, flow, start(senders[flow, SENDER_CONTROL], words, event))
        flows[flow, FLOW_LAST] += num_packets
        flows[flow, FLOW_TAIL_BYTES] = tail_bytes
        flows[flow, FLOW_PROGRESS_PS] = state.scalars[NOW_PS]
        if flows[flow, FLOW_TIMER_ARMED] == 0:
            flows[flow, FLOW_TIMER_ARMED] = 1
            schedule_timer(state, flow, state.scalars[NOW_PS] + TIMEOUT_PS)
        fill(state, flow)

    @inlined
    def receive_data(state: State, flow: int, packet: int) -> None:
        if state.octets[octets_of(state, packet) + _TOS] & CE == CE:
            state.senders[flow, RECEIVER_MARKED] += 1
        transport.receive_data(state, flow, packet, state.senders[flow, RECEIVER_MARKED])

    @inlined
    def receive_acknowledgement(state: State, flow: int, packet: int) -> None:
        if state.senders[flow, SENDER_CONTROL] == NONE:
            transport.receive_acknowledgement(state, flow, packet)
        else:
            acknowledge(state, flow, packet)

    @inlined
    def time_out(state: State, flow: int) -> None:
        if state.senders[flow, SENDER_CONTROL] == NONE:
            transport.time_out(state, flow)
        else:
            expire(state, flow)

    @inlined
    def begin(state: State, flow: int, num_packets: int, tail_bytes: int) -> None:
        if state.senders[flow, SENDER_CONTROL] == NONE:
            transport.begin_transfer(state, flow, num_packets, tail_bytes)
        else:
            start_sending(state, flow, num_packets, tail_bytes)

    return Transport(delivery(receive_data, receive_acknowledgement), leave_nic, time_out, begin)


def _choice(functions: tuple[Reaction, ...], index: int = 0) -> Callable[[Integer, Words, Event], float]:
    """Return the function that calls the one of a flow's control, of those from an index on."""
    own = inlined(functions[index])

    @inlined
    def last(_: Integer, words: Words, event: Event) -> float:
        return float(own(words, event))

    if index + 1 == len(functions):
        return last
    others = _choice(functions, index + 1)

    @inlined
    def choose(control: Integer, words: Words, event: Event) -> float:
        if control == index:
            return float(own(words, event))
        return others(control, words, event)

    return choose


@inlined
def leave_nic(state: State, packet: int) -> None:
    """Note when a packet leaves, and let the next one of its flow join the queue."""
    flow = state.packets[packet, PACKET_FLOW]
    if flow == NONE or state.packets[packet, PACKET_KIND] != DATA:
        return
    if state.senders[flow, SENDER_CONTROL] == NONE:
        transport.leave_nic(state, packet)
        return
    state.flows[flow, FLOW_WAITING] -= 1
    place = SENDER_SENT_PS + (state.packets[packet, PACKET_NUMBER] & _SENT_MASK)
    if state.senders[flow, place] != NONE:
        state.senders[flow, place] = state.scalars[NOW_PS]
    fill(state, flow)


@separate
def fill(state: State, flow: int) -> None:
    """Send the next packet that the window allows, if no packet of the flow waits at its NIC."""
    flows, senders = state.flows, state.senders
    while flows[flow, FLOW_WAITING] == 0:
        first = max(flows[flow, FLOW_RETRANSMITTED] + 1, flows[flow, FLOW_UNACKNOWLEDGED])
        lost = missing_number(state, flow, first, senders[flow, SENDER_LOST_END])
        number = flows[flow, FLOW_NEXT]
        end = min(flows[flow, FLOW_LAST], flows[flow, FLOW_UNACKNOWLEDGED] + MAX_WINDOW)
        if lost == NONE and number >= end:
            return
        window, in_flight = state.windows[flow, WINDOW], pipe(state, flow)
        if in_flight + 1 > max(1.0, window):
            senders[flow, SENDER_IS_LIMITED] = 1
            return
        if window < 1:
            senders[flow, SENDER_IS_LIMITED] = 1
            due_ps = senders[flow, SENDER_LAST_SENT_PS] + np.int64(senders[flow, SENDER_RTT_PS] / window)
            if due_ps > state.scalars[NOW_PS]:
                schedule_timer(state, flow, min(due_ps, flows[flow, FLOW_PROGRESS_PS] + TIMEOUT_PS))
                return
        if in_flight == 0:
            flows[flow, FLOW_PROGRESS_PS] = state.scalars[NOW_PS]
        # A window below 2 n may be cut to less than the n packets for which a receiver would wait.
        is_small = window < 2 * flows[flow, FLOW_ACKNOWLEDGE_EVERY]
        request = URGENT if is_small or in_flight + 2 > window else 0
        senders[flow, SENDER_LAST_SENT_PS] = state.scalars[NOW_PS]
        if lost != NONE:
            send_again(state, flow, lost, URGENT)
        else:
            senders[flow, SENDER_SENT_PS + (number & _SENT_MASK)] = 0
            flows[flow, FLOW_NEXT] += 1
            transport.send_data(state, flow, number, request, senders[flow, SENDER_TOS])


@inlined
def send_again(state: State, flow: int, number: Integer, request: int) -> None:
    """Resend a number, whose acknowledgement tells no round-trip time."""
    state.senders[flow, SENDER_SENT_PS + (number & _SENT_MASK)] = NONE
    transport.send_again(state, flow, number, request, state.senders[flow, SENDER_TOS])


@inlined
def pipe(state: State, flow: int) -> int:
    """Return the packets in flight: all that are unacknowledged but have not arrived, and are not lost."""
    flows, senders = state.flows, state.senders
    expected, arrived = flows[flow, FLOW_UNACKNOWLEDGED], senders[flow, SENDER_ARRIVED]
    in_flight = flows[flow, FLOW_NEXT] - expected - ones(arrived)
    for number in range(max(flows[flow, FLOW_RETRANSMITTED] + 1, expected), senders[flow, SENDER_LOST_END]):
        in_flight -= not has_arrived(arrived, number - expected)
    return int(in_flight)


@inlined
def missing_number(state: State, flow: int, first: Integer, end: Integer) -> Integer:
    """Return the lowest number from ``first`` on and below ``end`` that has not arrived, or NONE."""
    expected, arrived = state.flows[flow, FLOW_UNACKNOWLEDGED], state.senders[flow, SENDER_ARRIVED]
    for number in range(first, end):
        if not has_arrived(arrived, number - expected):
            return number
    return np.int64(NONE)


@inlined
def has_arrived(arrived: Integer, place: Integer) -> bool:
    """Return whether the packet so many numbers after the lowest unacknowledged one has arrived."""
    return place != 0 and arrived >> (place - 1) & 1 != 0


@inlined
def ones(word: Integer) -> int:
    """Return the number of bits that are set."""
    count = np.int64(0)
    while word != 0:
        word &= word - 1
        count += 1
    return int(count)


@inlined
def overtaken_end(state: State, flow: int) -> int:
    """Return the highest number below which every missing one has been overtaken by three."""
    arrived, place = state.senders[flow, SENDER_ARRIVED], np.int64(0)
    while transport.is_overtaken(arrived):
        arrived >>= 1
        place += 1
    return int(state.flows[flow, FLOW_UNACKNOWLEDGED] + place) if place else 0


@inlined
def sample_rtt(state: State, flow: int) -> int:
    """Return the round-trip time of the newest packet that has arrived if it was not known and sent once, else 0."""
    senders, arrived = state.senders, state.senders[flow, SENDER_ARRIVED]
    newest = state.flows[flow, FLOW_UNACKNOWLEDGED] - 1
    if arrived != 0:
        newest += 1
        while arrived != 0:
            newest += 1
            arrived >>= 1
    if newest <= senders[flow, SENDER_NEWEST]:
        return 0
    senders[flow, SENDER_NEWEST] = newest
    sent_ps = senders[flow, SENDER_SENT_PS + (newest & _SENT_MASK)]
    if sent_ps == NONE:
        return 0
    senders[flow, SENDER_RTT_PS] = state.scalars[NOW_PS] - sent_ps
    return int(senders[flow, SENDER_RTT_PS])


@inlined
def event_of(state: State, flow: int, delivered: Integer, marked: Integer, rtt_ps: Integer) -> Event:
    """Return what the flow's control is told."""
    flows, senders = state.flows, state.senders
    window, in_flight = state.windows[flow, WINDOW], pipe(state, flow)
    return Event(
        state.scalars[NOW_PS] * _S_PER_PS,
        window,
        int(delivered),
        int(marked),
        rtt_ps * _S_PER_PS,
        flows[flow, FLOW_UNACKNOWLEDGED],
        flows[flow, FLOW_NEXT],
        in_flight,
        senders[flow, SENDER_IS_LIMITED] != 0 or 2 * (in_flight + delivered) >= window,
        senders[flow, SENDER_IS_RECOVERING] != 0,
    )


@inlined
def set_window(state: State, flow: int, window: float) -> None:
    """Set the window within its bounds, which also catch what is no number."""
    if not window > SMALLEST_WINDOW:
        window = SMALLEST_WINDOW
    state.windows[flow, WINDOW] = min(window, float(MAX_WINDOW))
