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

# The calendar is a row of pairs. The pair at 2 says what is next; those at 4n and 4n + 2 decide that at 2n; the second
# half are the places.
FIRST_PS, FIRST_PLACE = 2, 3


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
    calendar, one, two = state.calendar, np.uint64(1), np.uint64(2)
    at = np.uint64(len(calendar) // 2 + 2 * place)
    first, first_ps = np.int64(place), np.int64(time_ps)
    if calendar[at] == time_ps:
        return
    calendar[at] = time_ps
    while at > two:
        other = at ^ two
        other_ps, other_first = calendar[other], calendar[other + one]
        # All ones where the other is earlier, or as early and the left one, else 0: a processor cannot foresee which.
        other_wins = other_ps - (first_ps + np.int64((at & two) >> one)) >> 63
        first_ps ^= (first_ps ^ other_ps) & other_wins
        first ^= (first ^ other_first) & other_wins
        at = (at >> two) << one
        calendar[at] = first_ps
        calendar[at + one] = first


def calendar_of(num_places: int, before: NDArray[np.int64] | None = None) -> NDArray[np.int64]:
    """A calendar with at least so many places; those there are ``before`` keep their times."""
    size = 1 << (num_places - 1).bit_length()
    pairs = np.full((2 * size, 2), NEVER_PS, dtype=np.int64)
    pairs[size:, 1] = np.arange(size)
    if before is not None:
        places = before[len(before) // 2 :: 2]
        pairs[size : size + len(places), 0] = places
    while size > 1:
        left, right = pairs[size : 2 * size : 2], pairs[size + 1 : 2 * size : 2]
        pairs[size // 2 : size] = np.where(left[:, :1] <= right[:, :1], left, right)
        size //= 2
    return pairs.reshape(-1)
