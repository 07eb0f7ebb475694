"""Windows of time in which the parts of a fabric advance side by side, each on a core of its own.

A part has a state of its own, with its own calendar and packets. A packet that crosses from one part to another arrives
there after the delay of its link. So if nobody has an event before a time, all parts may process what comes before that
time plus the smallest such delay, the *lookahead*: a conservative simulation in synchronous windows (Lubachevsky, CACM
1989; Nicol, JACM 1993). After a window the parts meet, and exchange packets through mailboxes.

Python acts where a transfer is complete, so that nobody may pass that moment. Links to hosts have delays too: at the
beginning of a window, all packets that can reach a host in it are already on its link. The parts look for the first
that can complete a transfer, and the window ends with its arrival: before it, all parts process exactly the events that
one core would.

Parts synchronise by rounds. In each round every part publishes a line of words and waits for those of all others. Lines
of even and odd rounds are different ones, so that nobody overwrites what another part has yet to read.
"""

from collections.abc import Sequence
from typing import Final

import numpy as np
from numpy.typing import NDArray

from emulator.engine.border import (
    CRITICAL_HOPS,
    CUTS,
    HOPS_BEFORE,
    HORIZON_PS,
    HOST_LINKS,
    IS_LEAVING,
    LAST_KEY,
    LINES,
    LISTS,
    LOOKAHEAD_PS,
    NUMBER,
    ORDERS,
    PART_LINES,
    PARTS,
    ROUND,
    RUNS,
    SOUGHT,
    STEP_PLACE,
    UNTIL_PS,
    WINDOWS,
)
from emulator.engine.events import FIRST_KEY, NEVER_PS
from emulator.engine.mailboxes import earliest_mail_ps, earliest_sent_ps, receive_all, send_all
from emulator.engine.packets import WORDS_IN_LINE
from emulator.engine.state import (
    DATA,
    FLOW_EXPECTED,
    FLOW_LAST,
    FLOW_RECEIVED,
    HOPS,
    IDLE_UNTIL_PS,
    LINK_ARRIVES_PS,
    LINK_FIRST,
    NONE,
    NOW_PS,
    PACKET_FLOW,
    PACKET_KIND,
    PACKET_NEXT,
    PACKET_NEXT_ARRIVES_PS,
    PACKET_NUMBER,
    State,
)
from emulator.jit import compiled, external, inlined, load_acquire, separate, store_release

# Words of a part's line.
_ROUND, _TIME_PS, _FLAGS, _LINK, _HOPS = 0, 1, 2, 3, 4
STOPS, IS_FULL, IS_SHORT = 1, 2, 4
LEAVES: Final = -2  # in the place of a key: a part is to return to Python

# A part that waits tries so often, then leaves its processor to others so often, then sleeps.
_SPINS, _YIELDS, _NAP_US, _LONGEST_NAP_US = 2_000, 200, 20, 500

c_sched_yield = external("sched_yield", 32)
c_usleep = external("usleep", 32, 32)


def next_event_ps(states: Sequence[State]) -> int:
    """Return the time of the next event in any part; NEVER_PS if there is none."""
    times = [int(min(state.calendar[FIRST_KEY], state.timers[FIRST_KEY])) >> 1 for state in states]
    return min(*times, earliest_mail_ps(states))


# ---- a run ----------------------------------------------------------------------------------------------------------


@inlined
def begin(state: State, until_ps: int) -> int:
    """Begin a run: the first part gives the order, the others wait for it. Return the last key, or LEAVES."""
    border = state.border
    if len(border) == 0:
        return 2 * until_ps + 1
    if border[NUMBER] == 0:
        order(state.meeting, until_ps, 0)
    elif not wait_for_order(state):
        return LEAVES
    return int(border[LAST_KEY])


@compiled
def order(meeting: NDArray[np.int64], until_ps: int, is_leaving: int) -> None:
    """Have the other parts run to a time, or leave."""
    meeting[UNTIL_PS], meeting[IS_LEAVING] = until_ps, is_leaving
    store_release(meeting, ORDERS, meeting[ORDERS] + 1)


@inlined
def wait_for_order(state: State) -> bool:
    """End a run and wait for the first part's next order; return whether it is to run again."""
    border, meeting = state.border, state.meeting
    store_release(meeting, _ended(border[NUMBER]), border[RUNS])
    border[RUNS] += 1
    wait_until(meeting, ORDERS, border[RUNS])
    return bool(meeting[IS_LEAVING] == 0)


@inlined
def wait_for_others(state: State) -> None:
    """Wait until all other parts have ended the run, and leave their states alone."""
    meeting = state.meeting
    for part in range(1, state.border[PARTS]):
        wait_until(meeting, _ended(part), meeting[ORDERS])


@inlined
def _ended(part: int) -> int:
    """Return the word that counts the runs that a part has ended."""
    return int(LINES + WORDS_IN_LINE * (PART_LINES * part + 2))


@inlined
def wait_until(words: NDArray[np.int64], at: int, value: int) -> None:
    """Wait until another thread has raised a word to a value."""
    tries, nap_us = 0, _NAP_US
    while load_acquire(words, at) < value:
        tries += 1
        if tries > _SPINS + _YIELDS:
            c_usleep(np.uint32(nap_us))
            nap_us = min(2 * nap_us, _LONGEST_NAP_US)
        elif tries > _SPINS:
            c_sched_yield()


@inlined
def is_in_step(state: State, key: int, place: int) -> bool:
    """Return whether an event behind the last key is one of the arrivals that the window still has."""
    border = state.border
    return bool(len(border) > 0 and key == border[LAST_KEY] + 1 and place < border[STEP_PLACE])


@separate
def goes_on(state: State, until_ps: int, must_stop: bool) -> bool:
    """Return whether a run goes on where all its events are processed, or where Python must act."""
    border, scalars = state.border, state.scalars
    if len(border) == 0:
        if not must_stop:
            scalars[NOW_PS] = scalars[IDLE_UNTIL_PS] = until_ps
        return False
    if _meet(state, must_stop):
        return True
    if border[NUMBER] == 0:
        wait_for_others(state)
        return False
    # In the next run, what Python has changed comes first, in the window that there was.
    return wait_for_order(state)


@inlined
def _meet(state: State, must_stop: bool) -> bool:
    """Exchange packets with the other parts and begin the next window; return whether there is one."""
    border, scalars, meeting = state.border, state.scalars, state.meeting
    until_ps = meeting[UNTIL_PS]
    while True:
        is_full = not must_stop and not send_all(state)
        first_ps = _first_ps(state)
        at = _own_line(state)
        meeting[at + _TIME_PS] = first_ps
        meeting[at + _FLAGS] = STOPS if must_stop else IS_FULL if is_full else 0
        meeting[at + _HOPS] = scalars[HOPS] - border[HOPS_BEFORE]
        border[HOPS_BEFORE] = scalars[HOPS]
        flags, most_hops = _publish(state, at), np.int64(0)
        for part in range(border[PARTS]):
            line = _line(state, part)
            first_ps = min(first_ps, meeting[line + _TIME_PS])
            most_hops = max(most_hops, meeting[line + _HOPS])
        border[CRITICAL_HOPS] += most_hops
        if flags & STOPS:
            return False
        if flags == 0 and first_ps > until_ps:
            scalars[NOW_PS] = scalars[IDLE_UNTIL_PS] = until_ps
            return False
        is_short = not receive_all(state)
        if flags == 0 and first_ps >= border[HORIZON_PS]:
            border[HORIZON_PS] = min(first_ps + border[LOOKAHEAD_PS], NEVER_PS)
            for row in range(border[HOST_LINKS]):
                _look(state, row)
        row = _first_completion(state)
        at = _own_line(state)
        meeting[at + _TIME_PS] = NEVER_PS if row == NONE else border[_completions(state) + row]
        meeting[at + _LINK] = NONE if row == NONE else border[_host_links(state) + row]
        meeting[at + _FLAGS] = IS_SHORT if is_short else 0
        if _publish(state, at) & IS_SHORT:
            return False
        if flags == 0:
            _begin_window(state, row, until_ps)
            return True


@inlined
def _begin_window(state: State, own_row: int, until_ps: int) -> None:
    """Set the window's end: the horizon, the end of the run, or the first possible completion."""
    border, meeting = state.border, state.meeting
    time_ps, link, number = min(border[HORIZON_PS], until_ps + 1), np.int64(NONE), np.int64(NONE)
    for part in range(border[PARTS]):
        line = _line(state, part)
        other_ps, other_link = meeting[line + _TIME_PS], meeting[line + _LINK]
        if other_ps < time_ps or (link != NONE and other_ps == time_ps and other_link < link):
            time_ps, link, number = other_ps, other_link, np.int64(part)
    border[LAST_KEY] = 2 * time_ps - 1
    border[STEP_PLACE] = 0 if link == NONE else link
    border[WINDOWS] += 1
    if number == border[NUMBER]:
        border[STEP_PLACE] += 1
        border[SOUGHT] = own_row


# ---- rounds ---------------------------------------------------------------------------------------------------------


@inlined
def _line(state: State, part: int) -> int:
    """Return the word at which a part's line of the present round starts."""
    return int(LINES + WORDS_IN_LINE * (PART_LINES * part + (state.border[ROUND] & 1)))


@inlined
def _own_line(state: State) -> int:
    """Begin a round; return the part's own line."""
    state.border[ROUND] += 1
    return _line(state, state.border[NUMBER])


@inlined
def _publish(state: State, at: int) -> int:
    """Publish the part's line and wait for those of all others; return the flags of all."""
    border, meeting, flags = state.border, state.meeting, np.int64(0)
    store_release(meeting, at + _ROUND, border[ROUND])
    for part in range(border[PARTS]):
        line = _line(state, part)
        wait_until(meeting, line + _ROUND, border[ROUND])
        flags |= meeting[line + _FLAGS]
    return int(flags)


@inlined
def _first_ps(state: State) -> int:
    """Return the time of the part's next event, or of a packet's that it has sent and that is not yet taken."""
    return int(min(min(state.calendar[FIRST_KEY], state.timers[FIRST_KEY]) >> 1, earliest_sent_ps(state)))


# ---- completions ----------------------------------------------------------------------------------------------------


@inlined
def _host_links(state: State) -> int:
    """Return the word at which the list of links to hosts starts."""
    return int(LISTS + 2 * state.border[CUTS])


@inlined
def _completions(state: State) -> int:
    """Return the word at which the first possible completions start, one for each link to a host."""
    return int(LISTS + 2 * state.border[CUTS] + state.border[HOST_LINKS])


@inlined
def _first_completion(state: State) -> int:
    """Return the row of the link to a host with the first possible completion; NONE where no link has any."""
    border, at = state.border, _completions(state)
    if border[SOUGHT] != NONE:
        _look(state, border[SOUGHT])
        border[SOUGHT] = NONE
    first, first_ps = NONE, np.int64(NEVER_PS)
    for row in range(border[HOST_LINKS]):
        if border[at + row] < first_ps:
            first, first_ps = row, border[at + row]
    return first


@inlined
def _look(state: State, row: int) -> None:
    """Find the first packet on a link to a host that may complete a transfer before the horizon.

    It is the last packet of a transfer, or any that comes when that one has arrived. Others may complete nothing.
    """
    border, links, packets, flows = state.border, state.links, state.packets, state.flows
    link, found_ps = border[_host_links(state) + row], np.int64(NEVER_PS)
    arrives_ps, packet = links[link, LINK_ARRIVES_PS], links[link, LINK_FIRST]
    while arrives_ps < border[HORIZON_PS]:
        flow = packets[packet, PACKET_FLOW]
        if flow != NONE and packets[packet, PACKET_KIND] == DATA:
            ahead = flows[flow, FLOW_LAST] - 1 - flows[flow, FLOW_EXPECTED]
            has_last = 0 < ahead <= 62 and flows[flow, FLOW_RECEIVED] >> (ahead - 1) & 1 != 0
            if has_last or packets[packet, PACKET_NUMBER] == flows[flow, FLOW_LAST] - 1:
                found_ps = arrives_ps
                break
        arrives_ps, packet = packets[packet, PACKET_NEXT_ARRIVES_PS], packets[packet, PACKET_NEXT]
    border[_completions(state) + row] = found_ps
