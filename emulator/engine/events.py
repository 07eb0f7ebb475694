"""The calendar of events: a binary heap ordered by time and, at equal times, by the order of scheduling."""

from emulator.engine.state import (
    EVENT_COLUMNS,
    EVENT_KIND,
    EVENT_ORDER,
    EVENT_PACKET,
    EVENT_SUBJECT,
    EVENT_TIME_PS,
    EVENTS,
    ORDER,
    State,
)
from emulator.jit import compiled


@compiled
def schedule(state: State, time_ps: int, kind: int, subject: int, packet: int) -> None:
    """Put an event into the calendar."""
    events, scalars = state.events, state.scalars
    hole = scalars[EVENTS]
    scalars[EVENTS] += 1
    while hole > 0:
        parent = (hole - 1) >> 1
        if events[parent, EVENT_TIME_PS] <= time_ps:
            break
        for column in range(EVENT_COLUMNS):
            events[hole, column] = events[parent, column]
        hole = parent
    events[hole, EVENT_TIME_PS] = time_ps
    events[hole, EVENT_ORDER] = scalars[ORDER]
    events[hole, EVENT_KIND] = kind
    events[hole, EVENT_SUBJECT] = subject
    events[hole, EVENT_PACKET] = packet
    scalars[ORDER] += 1


@compiled
def remove_first(state: State) -> None:
    """Take the first event out of the calendar; the caller has read it."""
    events, scalars = state.events, state.scalars
    scalars[EVENTS] -= 1
    last = scalars[EVENTS]
    time_ps, order = events[last, EVENT_TIME_PS], events[last, EVENT_ORDER]
    hole = 0
    while True:
        child = 2 * hole + 1
        if child >= last:
            break
        if child + 1 < last and _before(state, child + 1, child):
            child += 1
        if events[child, EVENT_TIME_PS] > time_ps or (
            events[child, EVENT_TIME_PS] == time_ps and events[child, EVENT_ORDER] > order
        ):
            break
        for column in range(EVENT_COLUMNS):
            events[hole, column] = events[child, column]
        hole = child
    for column in range(EVENT_COLUMNS):
        events[hole, column] = events[last, column]


@compiled
def _before(state: State, first: int, second: int) -> bool:
    events = state.events
    if events[first, EVENT_TIME_PS] != events[second, EVENT_TIME_PS]:
        return bool(events[first, EVENT_TIME_PS] < events[second, EVENT_TIME_PS])
    return bool(events[first, EVENT_ORDER] < events[second, EVENT_ORDER])
