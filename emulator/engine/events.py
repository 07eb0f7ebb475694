"""The calendar: for everything that something can happen to, the time when it next does.

Three things happen: a packet arrives at the end of a link, a link is to be started because it has sent a packet and
others wait, a flow's timer runs down. Each link has a place for whichever of the first two is earlier, and each flow
one for the third. The places are the leaves of a tournament in which the earlier of two goes on to the next round. Of
two at one time arrivals come first, then links to be started, then timers, and among these that with the lower number:
so a run is the same every time. A match needs no branch that a processor could not foresee, and places stay where they
are whatever else happens.
"""

import numpy as np
from numpy.typing import NDArray

from emulator.engine.state import LINK_ARRIVES_PS, LINK_STARTS_PS, Integer, State
from emulator.jit import compiled

NEVER_PS = 2**61

# A key is twice a time, and one more where it is no arrival. The calendar's rows are pairs of a key and a place. Row 1
# is the final, rows 2n and 2n + 1 decide row n; the second half are the places.
FIRST_KEY, FIRST_PLACE = 2, 3


@compiled
def schedule_link(state: State, link: Integer) -> None:
    """What is next on a link has changed: when its first packet arrives, or when it is to be started."""
    arrives_ps, starts_ps = state.links[link, LINK_ARRIVES_PS], state.links[link, LINK_STARTS_PS]
    set_key(state, link, min(2 * arrives_ps, 2 * starts_ps + 1))


@compiled
def schedule_timer(state: State, flow: Integer, time_ps: Integer) -> None:
    """Set when the timer of a flow runs down; NEVER_PS stops it."""
    set_key(state, len(state.links) + flow, 2 * np.int64(time_ps) + 1)


@compiled
def set_key(state: State, place: Integer, key: Integer) -> None:
    """Give a place another key and play its matches."""
    calendar, one, two = state.calendar, np.uint64(1), np.uint64(2)
    at = np.uint64(len(calendar) // 2 + 2 * place)
    first, first_key = np.int64(place), np.int64(key)
    if calendar[at] == key:
        return
    calendar[at] = key
    while at > two:
        other = at ^ two
        other_key, other_first = calendar[other], calendar[other + one]
        # All ones where the other is earlier, or as early and the left one, else 0: a processor cannot foresee which.
        other_wins = other_key - (first_key + np.int64((at & two) >> one)) >> 63
        first_key ^= (first_key ^ other_key) & other_wins
        first ^= (first ^ other_first) & other_wins
        at = (at >> two) << one
        if calendar[at] == first_key and calendar[at + one] == first:
            return
        calendar[at] = first_key
        calendar[at + one] = first


def calendar_of(num_places: int, before: NDArray[np.int64] | None = None) -> NDArray[np.int64]:
    """A calendar with at least so many places; those there are ``before`` keep their keys."""
    size = 1 << (num_places - 1).bit_length()
    pairs = np.full((2 * size, 2), 2 * NEVER_PS, dtype=np.int64)
    pairs[size:, 1] = np.arange(size)
    if before is not None:
        places = before[len(before) // 2 :: 2]
        pairs[size : size + len(places), 0] = places
    while size > 1:
        left, right = pairs[size : 2 * size : 2], pairs[size + 1 : 2 * size : 2]
        pairs[size // 2 : size] = np.where(left[:, :1] <= right[:, :1], left, right)
        size //= 2
    return pairs.reshape(-1)
