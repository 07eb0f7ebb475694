"""Traffic manager: eight queues in front of every link, strict priority, tail drop by bytes."""

import numpy as np

from emulator.engine.events import NEVER_PS, schedule_link
from emulator.engine.packets import WORDS_IN_LINE, octets_of, release_packet, row_of
from emulator.engine.state import (
    ACKNOWLEDGEMENT,
    ANSWER,
    DATA,
    FLOW_WAITING,
    KICKED,
    LEVELS,
    LINK_ARRIVES_PS,
    LINK_BYTES,
    LINK_DOWN,
    LINK_FIRST,
    LINK_FREE_PS,
    LINK_HEAD,
    LINK_LAST,
    LINK_OCCUPIED,
    LINK_PACKETS,
    LINK_QUEUE_LIMIT_BYTES,
    LINK_SOURCE_SWITCH,
    LINK_STARTS_PS,
    LINK_TAIL,
    LINK_UP,
    LINK_WAITED_FOR,
    LOST,
    NONE,
    NOW_PS,
    PACKET_ARRIVES_PS,
    PACKET_DEPTH,
    PACKET_ENQUEUED_PS,
    PACKET_FLOW,
    PACKET_KIND,
    PACKET_LENGTH,
    PACKET_NEXT,
    PACKET_NEXT_ARRIVES_PS,
    PACKET_NUMBER,
    PACKET_WORDS,
    QUEUE_COLUMNS,
    QUEUE_FULL,
    QUEUED,
    QUEUES,
    TRACE_FLOW,
    TRACE_KIND,
    TRACE_LENGTH,
    TRACE_LEVEL,
    TRACE_LINK,
    TRACE_NUMBER,
    TRACE_TIME_PS,
    TRACED,
    State,
)
from emulator.jit import compiled, inlined, prefetch

_HIGHEST_BIT = np.array([occupied.bit_length() - 1 for occupied in range(1 << QUEUES)])
"""Highest set bit by value; a table, because a processor cannot predict a loop over the levels."""


@inlined
def enqueue(state: State, link: int, packet: int, level: int) -> None:
    """Put a packet at the end of a queue; drop and count it if the queue is full or the link is down.

    If nothing is about to start the link, mark it: to start when it is free, or at the end of this event.
    """
    links, packets, queue = state.links, state.packets, QUEUE_COLUMNS * level
    length = packets[packet, PACKET_LENGTH]
    if links[link, LINK_UP] == 0:
        drop(state, LINK_DOWN, link, level, packet)
        return
    if links[link, LINK_BYTES + queue] + length > links[link, LINK_QUEUE_LIMIT_BYTES]:
        drop(state, QUEUE_FULL, link, level, packet)
        return
    packets[packet, PACKET_NEXT] = NONE
    packets[packet, PACKET_ENQUEUED_PS] = state.scalars[NOW_PS]
    packets[packet, PACKET_DEPTH] = links[link, LINK_PACKETS + queue]
    if links[link, LINK_PACKETS + queue] == 0:
        links[link, LINK_HEAD + queue] = packet
        links[link, LINK_OCCUPIED] |= 1 << level
    else:
        packets[links[link, LINK_TAIL + queue], PACKET_NEXT] = packet
    links[link, LINK_TAIL + queue] = packet
    links[link, LINK_PACKETS + queue] += 1
    links[link, LINK_BYTES + queue] += length
    trace(state, QUEUED, link, level, packet)
    if links[link, LINK_WAITED_FOR] == 0:
        links[link, LINK_WAITED_FOR] = 1
        if links[link, LINK_FREE_PS] > state.scalars[NOW_PS]:
            links[link, LINK_STARTS_PS] = links[link, LINK_FREE_PS]
            schedule_link(state, link)
        else:
            kick(state, link)


@inlined
def enqueue_in_switch(state: State, link: int, packet: int, level: int) -> None:
    """Enqueue a packet at the level that a switch's program chose; hosts' acknowledgements precede all data.

    Behind data of the most urgent level, acknowledgements would wait for senders that wait for them.
    """
    kind = state.packets[packet, PACKET_KIND]
    is_acknowledgement = kind in (ACKNOWLEDGEMENT, ANSWER)
    enqueue(state, link, packet, LEVELS if is_acknowledgement and level == LEVELS - 1 else level)


@inlined
def kick(state: State, link: int) -> None:
    """Start a link at the end of the present event."""
    state.kicks[state.scalars[KICKED]] = link
    state.scalars[KICKED] += 1


@inlined
def drop(state: State, reason: int, link: int, level: int, packet: int) -> None:
    """Count a packet that is lost before or on a link at the link's sender, and release it."""
    trace(state, LOST, link, level, packet)
    source = state.links[link, LINK_SOURCE_SWITCH]
    state.drops[source, reason] += 1
    if source == NONE and level != NONE and state.packets[packet, PACKET_KIND] == DATA:
        state.flows[state.packets[packet, PACKET_FLOW], FLOW_WAITING] -= 1
    release_packet(state, packet)


@compiled
def flush(state: State, link: int, reason: int) -> None:
    """Drop all packets that wait for a link, for this reason."""
    for level in range(QUEUES):
        while state.links[link, LINK_PACKETS + QUEUE_COLUMNS * level] > 0:
            drop(state, reason, link, level, dequeue(state, link, level))


@compiled
def lose_arrivals(state: State, link: int, reason: int) -> None:
    """Drop all packets on a link, for this reason."""
    while state.links[link, LINK_FIRST] != NONE:
        drop(state, reason, link, NONE, take_from_link(state, link))


@inlined
def most_urgent_level(state: State, link: int) -> int:
    """Return the highest level with a waiting packet, or NONE."""
    return int(_HIGHEST_BIT[state.links[link, LINK_OCCUPIED]])


@inlined
def dequeue(state: State, link: int, level: int) -> int:
    """Take the first packet of a queue that is not empty."""
    links, queue = state.links, QUEUE_COLUMNS * level
    packet = links[link, LINK_HEAD + queue]
    following = state.packets[packet, PACKET_NEXT]
    links[link, LINK_HEAD + queue] = following
    prefetch(state.packets, following * state.scalars[PACKET_WORDS])
    prefetch(state.words, row_of(state, following))
    prefetch(state.words, row_of(state, following) + WORDS_IN_LINE)
    links[link, LINK_PACKETS + queue] -= 1
    links[link, LINK_BYTES + queue] -= state.packets[packet, PACKET_LENGTH]
    if links[link, LINK_PACKETS + queue] == 0:
        links[link, LINK_OCCUPIED] &= ~(1 << level)
    return int(packet)


@inlined
def put_on_link(state: State, link: int, packet: int, arrives_ps: int) -> None:
    """Schedule a packet's arrival at the end of a link, behind those that arrive before or at the same time."""
    links, packets = state.links, state.packets
    packets[packet, PACKET_ARRIVES_PS] = arrives_ps
    last, following = links[link, LINK_LAST], links[link, LINK_FIRST]
    if following == NONE or packets[last, PACKET_ARRIVES_PS] <= arrives_ps:
        before, following = (NONE if following == NONE else last), NONE
    else:
        before = NONE
        while packets[following, PACKET_ARRIVES_PS] <= arrives_ps:
            before, following = following, packets[following, PACKET_NEXT]
    packets[packet, PACKET_NEXT] = following
    if following == NONE:
        links[link, LINK_LAST] = packet
    if before == NONE:
        links[link, LINK_FIRST] = packet
        links[link, LINK_ARRIVES_PS] = arrives_ps
    else:
        packets[before, PACKET_NEXT] = packet
        packets[before, PACKET_NEXT_ARRIVES_PS] = arrives_ps
    packets[packet, PACKET_NEXT_ARRIVES_PS] = NEVER_PS if following == NONE else packets[following, PACKET_ARRIVES_PS]
    schedule_link(state, link)


@inlined
def take_from_link(state: State, link: int) -> int:
    """Take the packet that arrives now, and schedule the arrival of the next one."""
    packet = state.links[link, LINK_FIRST]
    following = state.packets[packet, PACKET_NEXT]
    state.links[link, LINK_FIRST] = following
    prefetch(state.packets, following * state.scalars[PACKET_WORDS])
    prefetch(state.octets, octets_of(state, following))
    state.links[link, LINK_ARRIVES_PS] = state.packets[packet, PACKET_NEXT_ARRIVES_PS]
    schedule_link(state, link)
    return int(packet)


@inlined
def trace(state: State, kind: int, link: int, level: int, packet: int) -> None:
    """Record an event if there is a trace; the event loop stops before the trace is full."""
    rows, scalars, packets = state.trace, state.scalars, state.packets
    row = scalars[TRACED]
    if row < len(rows):
        rows[row, TRACE_TIME_PS] = scalars[NOW_PS]
        rows[row, TRACE_KIND] = kind
        rows[row, TRACE_LINK] = link
        rows[row, TRACE_LEVEL] = level
        rows[row, TRACE_FLOW] = packets[packet, PACKET_FLOW]
        rows[row, TRACE_NUMBER] = packets[packet, PACKET_NUMBER]
        rows[row, TRACE_LENGTH] = packets[packet, PACKET_LENGTH]
        scalars[TRACED] += 1
