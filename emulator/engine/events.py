"""The calendar: for everything that something can happen to, the time when it next does.

Three things happen: a packet arrives at the end of a link, a link has sent a packet, a flow's timer runs down. Each
link has a place for the first two and each flow one for the third. The places are the leaves of a tournament in which
the earlier of two goes on to the next round, and of two at the same time that with the lower number: arrivals before
links that fall free, these before timers. So a run is the same every time. A match needs no branch that a processor
could not foresee, and places stay where they are whatever else happens.
"""

import numpy as np
from numpy.typing import NDArray

from emulator.engine.state import Integer, State
from emulator.jit import compiled

NEVER_PS = 2**62

# Columns of the calendar. Row 1 is the final, rows 2n and 2n + 1 decide row n; the second half are the places.
TIME_PS, PLACE = 0, 1
FIRST = 1


@compiled
def arrival(link: Integer) -> Integer:
    """Place of the first packet that arrives at the end of a link."""
    return link


@compiled
def departure(state: State, link: Integer) -> Integer:
    """Place of the moment at which a link has sent a packet and others wait."""
    return len(state.links) + link


@compiled
def timer(state: State, flow: Integer) -> Integer:
    """Place of the moment at which the timer of a flow runs down."""
    return 2 * len(state.links) + flow


@compiled
def schedule(state: State, place: Integer, time_ps: Integer) -> None:
    """Set when it happens next; NEVER_PS takes it out of the calendar."""
    calendar, one = state.calendar, np.uint64(1)
    node = np.uint64(len(calendar) // 2 + place)
    if calendar[node, TIME_PS] == time_ps:
        return
    first, first_ps = np.int64(place), np.int64(time_ps)
    calendar[node, TIME_PS] = time_ps
    while node > one:
        other = node ^ one
        other_ps, other_first = calendar[other, TIME_PS], calendar[other, PLACE]
        wins = other_ps < first_ps + np.int64(node & one)
        first_ps = other_ps if wins else first_ps
        first = other_first if wins else first
        node >>= one
        calendar[node, TIME_PS] = first_ps
        calendar[node, PLACE] = first


def calendar_of(num_places: int, before: NDArray[np.int64] | None = None) -> NDArray[np.int64]:
    """A calendar with at least so many places; those there are ``before`` keep their times."""
    size = 1 << (num_places - 1).bit_length()
    calendar = np.full((2 * size, 2), NEVER_PS, dtype=np.int64)
    calendar[size:, PLACE] = np.arange(size)
    if before is not None:
        half = len(before) // 2
        calendar[size : size + half, TIME_PS] = before[half:, TIME_PS]
    while size > 1:
        left, right = calendar[size : 2 * size : 2], calendar[size + 1 : 2 * size : 2]
        calendar[size // 2 : size] = np.where(left[:, :1] <= right[:, :1], left, right)
        size //= 2
    return calendar
