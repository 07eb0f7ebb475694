"""The calendar of events: a binary heap ordered by time.

An event is a time and a payload of one word that says what happens: its kind, the link or flow it happens to and, for
an arrival, the packet. Events of the same time come in the order of their payloads, so that a run is the same every
time.
"""

import numpy as np

from emulator.engine.state import EVENTS, State
from emulator.jit import compiled

ARRIVED, SENT, TIMED_OUT = 0, 1, 2

_SUBJECT_BIT = 32
_KIND_BIT = 60
_NEVER_PS = np.int64(2**63 - 1)
_ZERO, _ONE = np.uint64(0), np.uint64(1)  # unsigned, as indices that cannot be negative need no check


@compiled
def schedule(state: State, time_ps: int, kind: int, subject: int, packet: int) -> None:
    """Put an event into the calendar. A kind has 2 bits, a subject (link or flow) 28, a packet 32."""
    times, payloads = state.event_times, state.event_payloads
    payload = np.int64(kind) << _KIND_BIT | np.int64(subject) << _SUBJECT_BIT | packet
    hole = state.scalars[EVENTS]
    state.scalars[EVENTS] = hole + 1
    while hole > 0:
        parent = (hole - 1) >> 1
        if times[parent] < time_ps or (times[parent] == time_ps and payloads[parent] <= payload):
            break
        times[hole], payloads[hole] = times[parent], payloads[parent]
        hole = parent
    times[hole], payloads[hole] = time_ps, payload


@compiled
def remove_first(state: State) -> None:
    """Take the first event out of the calendar; the caller has read it.

    The hole sinks to the bottom along the earlier children, chosen without a branch, and the last event rises from
    there: it mostly belongs near the bottom, and a processor cannot foresee the comparisons of the usual way.
    """
    times, payloads = state.event_times, state.event_payloads
    last = np.uint64(state.scalars[EVENTS] - 1)
    state.scalars[EVENTS] = last
    time_ps, payload = times[last], payloads[last]
    times[last] = _NEVER_PS
    hole, child = _ZERO, _ONE
    while child < last:
        left_ps, right_ps = times[child], times[child + _ONE]
        if left_ps == right_ps:
            child += np.uint64(payloads[child + _ONE] < payloads[child])
        else:
            child += np.uint64(right_ps < left_ps)
        times[hole], payloads[hole] = times[child], payloads[child]
        hole, child = child, child + child + _ONE
    while hole > _ZERO:
        parent = (hole - _ONE) >> _ONE
        if times[parent] < time_ps or (times[parent] == time_ps and payloads[parent] <= payload):
            break
        times[hole], payloads[hole] = times[parent], payloads[parent]
        hole = parent
    times[hole], payloads[hole] = time_ps, payload


@compiled
def kind_of(payload: int) -> int:
    """What happens."""
    return payload >> _KIND_BIT


@compiled
def subject_of(payload: int) -> int:
    """The link or flow that it happens to."""
    return payload >> _SUBJECT_BIT & (1 << _KIND_BIT - _SUBJECT_BIT) - 1


@compiled
def packet_of(payload: int) -> int:
    """The packet that arrives."""
    return payload & (1 << _SUBJECT_BIT) - 1
