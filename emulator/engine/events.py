"""Event queue: the time of the next event of every link and every flow.

There are three kinds of events: a packet arrives at the end of a link; a link that finished a packet starts the next
one; a flow's timer expires. Each link has one place, for the earlier of its two events; each flow has one place in a
second queue. The places are the leaves of a tournament tree: of every eight, the earliest advances to the next round.
Simultaneous events have a fixed order: arrivals, then links to start, then timers, each by number. Runs are therefore
reproducible. A match has no branch that a processor could mispredict, and places never move.
"""

import numpy as np
from numpy.typing import NDArray

from emulator.engine.state import LINK_ARRIVES_PS, LINK_STARTS_PS, Integer, State
from emulator.jit import compiled, inlined

NEVER_PS = 2**61
END_PS = NEVER_PS - 1  # last moment of the clock, 26.7 days after its first

# A key is twice a time, plus one unless it is an arrival. Rows are pairs of a key and a place. Row 1 is the winner,
# rows 8n to 8n + 7 decide row n, and row 0 holds the number of the first leaf's row.
FIRST_LEAF, FIRST_KEY, FIRST_PLACE = 0, 2, 3
# With matches of eight 512 links need three rounds. With matches of two the engine was a fifth slower.
_SHIFT = 3  # log2 of the rows that decide one row of the next round


@inlined
def schedule_link(state: State, link: Integer) -> None:
    """Update a link's place after its first arrival or its next start has changed."""
    arrives_ps, starts_ps = state.links[link, LINK_ARRIVES_PS], state.links[link, LINK_STARTS_PS]
    set_key(state.calendar, link, min(2 * arrives_ps, 2 * starts_ps + 1))


@inlined
def schedule_timer(state: State, flow: Integer, time_ps: Integer) -> None:
    """Set the time at which a flow's timer expires; NEVER_PS stops it."""
    set_key(state.timers, flow, 2 * np.int64(time_ps) + 1)


@compiled
def set_key(calendar: NDArray[np.int64], place: Integer, key: Integer) -> None:
    """Give a place another key and replay its matches."""
    one, two, shift = np.uint64(1), np.uint64(2), np.uint64(_SHIFT)
    row, first, first_key = np.uint64(calendar[FIRST_LEAF] + place), np.int64(place), np.int64(key)
    if calendar[two * row] == first_key:
        return
    while row > one:
        calendar[two * row] = first_key
        calendar[two * row + one] = first
        row >>= shift
        at = two * (row << shift)
        first_key, first = _earlier(
            *_earlier(*_earlier_of(calendar, at), *_earlier_of(calendar, at + np.uint64(4))),
            *_earlier(*_earlier_of(calendar, at + np.uint64(8)), *_earlier_of(calendar, at + np.uint64(12))),
        )
    calendar[FIRST_KEY] = first_key
    calendar[FIRST_PLACE] = first


@inlined
def _earlier_of(calendar: NDArray[np.int64], at: np.uint64) -> tuple[np.int64, np.int64]:
    """Return the earlier of two adjacent rows."""
    one, two, three = np.uint64(1), np.uint64(2), np.uint64(3)
    return _earlier(calendar[at], calendar[at + one], calendar[at + two], calendar[at + three])


@inlined
def _earlier(key: np.int64, place: np.int64, other_key: np.int64, other_place: np.int64) -> tuple[np.int64, np.int64]:
    """Return the earlier of two pairs, the first if they are simultaneous."""
    other_wins = other_key - key >> 63  # all ones or 0, without a branch
    return key ^ (key ^ other_key) & other_wins, place ^ (place ^ other_place) & other_wins


def calendar_of(num_places: int, before: NDArray[np.int64] | None = None) -> NDArray[np.int64]:
    """Return an event queue with at least ``num_places`` places; those of ``before`` keep their keys."""
    size = 1
    while size < num_places:
        size <<= _SHIFT
    rows = np.full((2 * size, 2), 2 * NEVER_PS, dtype=np.int64)
    calendar = rows.reshape(-1)
    calendar[FIRST_LEAF] = size
    rows[size:, 1] = np.arange(size)
    if before is not None:
        places = before[2 * before[FIRST_LEAF] :: 2]
        rows[size : size + len(places), 0] = places
    while size > 1:
        groups = rows[size : 2 * size].reshape(-1, 1 << _SHIFT, 2)
        size >>= _SHIFT
        rows[size : 2 * size] = groups[np.arange(size), groups[:, :, 0].argmin(axis=1)]
    return calendar
