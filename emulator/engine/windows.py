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

from emulator.engine.events import FIRST_KEY, NEVER_PS, schedule_link
from emulator.engine.packets import release_packet, take_packet
from emulator.engine.queues import put_on_link
from emulator.engine.state import (
    DATA,
    FLOW_EXPECTED,
    FLOW_LAST,
    FLOW_RECEIVED,
    FREE_PACKETS,
    HOPS,
    IDLE_UNTIL_PS,
    LINK_ARRIVES_PS,
    LINK_FIRST,
    NONE,
    NOW_PS,
    OCTETS,
    PACKET_ARRIVES_PS,
    PACKET_FLOW,
    PACKET_KIND,
    PACKET_NEXT,
    PACKET_NEXT_ARRIVES_PS,
    PACKET_NUMBER,
    PACKET_OCTETS,
    PACKET_ROW,
    PACKET_STORED,
    PARSE_BYTES,
    RESERVE,
    State,
)
from emulator.jit import compiled, external, inlined, load_acquire, separate, store_release

_LINE: Final = 8  # words

# Words of ``border``, which a part has for itself.
NUMBER: Final = 0  # of the part
PARTS: Final = 1
LOOKAHEAD_PS: Final = 2
LAST_KEY: Final = 3  # the window's last key; and of the next moment, arrivals by links before
STEP_PLACE: Final = 4  # this one
HORIZON_PS: Final = 5  # so far all arrivals at hosts are known
ROUND: Final = 6
RUNS: Final = 7  # the present one's number
WINDOWS: Final = 8
CRITICAL_HOPS: Final = 9  # packet-hops of the part with the most, summed over windows
HOPS_BEFORE: Final = 10
SOUGHT: Final = 11  # row of the link to a host whose first completion is in this window, or NONE
CUTS: Final = 12  # links to other parts
HOST_LINKS: Final = 13  # links to hosts
LISTS: Final = 16  # pairs of a cut link and the part at its end; links to hosts; the first completion on each of them

# Words of ``meeting``, which all parts share: a line for orders, three lines for each part, then the mailboxes.
ORDERS: Final = 0  # counts runs
UNTIL_PS: Final = 1
IS_LEAVING: Final = 2
LINES: Final = _LINE
_PART_LINES: Final = 3  # of even rounds, of odd ones, and the number of runs that the part has ended
# Words of a part's line.
_ROUND, _TIME_PS, _FLAGS, _LINK, _HOPS = 0, 1, 2, 3, 4
STOPS, IS_FULL, IS_SHORT = 1, 2, 4
LEAVES: Final = -2  # in the place of a key: a part is to return to Python
# Words of a mailbox; rows follow it. A row is the link, then the words of the packet.
_COUNT, _TAKEN, _EARLIEST_PS = 0, 1, 2
MAIL_ROWS: Final = 2048
_MAIL_WORDS: Final = -(-(1 + PACKET_ROW) // _LINE) * _LINE
_MAILBOX_WORDS: Final = _LINE + MAIL_ROWS * _MAIL_WORDS

# A part that waits tries so often, then leaves its processor to others so often, then sleeps.
_SPINS, _YIELDS, _NAP_US, _LONGEST_NAP_US = 2_000, 200, 20, 500

c_sched_yield = external("sched_yield", 32)
c_usleep = external("usleep", 32, 32)


def meeting_of(parts: int) -> NDArray[np.int64]:
    """Return the words that parts share."""
    words = np.zeros(_mailboxes(parts) + parts * parts * _MAILBOX_WORDS + _LINE, dtype=np.int64)
    meeting = words[-(words.ctypes.data // words.itemsize) % _LINE :]
    meeting[_mailboxes(parts) + _EARLIEST_PS :: _MAILBOX_WORDS] = NEVER_PS
    return meeting


def _mailboxes(parts: int) -> int:
    """Return the word at which the mailboxes start."""
    return LINES + _PART_LINES * parts * _LINE


def border_of(
    number: int, parts: int, lookahead_ps: int, cuts: list[tuple[int, int]], host_links: list[int]
) -> NDArray[np.int64]:
    """Return the words of a part: ``cuts`` are its links to other parts, with the part at the end of each."""
    border = np.zeros(LISTS + 2 * len(cuts) + 2 * len(host_links), dtype=np.int64)
    border[NUMBER], border[PARTS], border[LOOKAHEAD_PS] = number, parts, lookahead_ps
    border[LAST_KEY] = border[SOUGHT] = NONE
    border[CUTS], border[HOST_LINKS] = len(cuts), len(host_links)
    border[LISTS : LISTS + 2 * len(cuts)] = [word for pair in cuts for word in pair]
    border[LISTS + 2 * len(cuts) :][: len(host_links)] = host_links
    border[LISTS + 2 * len(cuts) + len(host_links) :] = NEVER_PS
    return border


def next_event_ps(states: Sequence[State]) -> int:
    """Return the time of the next event in any part; NEVER_PS if there is none."""
    times = [int(min(state.calendar[FIRST_KEY], state.timers[FIRST_KEY])) >> 1 for state in states]
    return min(*times, _earliest_mail_ps(states))


def has_mail(states: Sequence[State]) -> bool:
    """Return whether a packet is on its way from one part to another, and in none of them."""
    return _earliest_mail_ps(states) < NEVER_PS


def _earliest_mail_ps(states: Sequence[State]) -> int:
    parts = len(states)
    if parts == 1:
        return NEVER_PS
    boxes = range(_mailboxes(parts), _mailboxes(parts) + parts * parts * _MAILBOX_WORDS, _MAILBOX_WORDS)
    return min(int(states[0].meeting[box + _EARLIEST_PS]) for box in boxes)


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
    return int(LINES + _LINE * (_PART_LINES * part + 2))


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
        is_full = not must_stop and not _send_all(state)
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
        is_short = not _receive_all(state)
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
    return int(LINES + _LINE * (_PART_LINES * part + (state.border[ROUND] & 1)))


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
    meeting, parts = state.meeting, state.border[PARTS]
    first_ps = min(state.calendar[FIRST_KEY], state.timers[FIRST_KEY]) >> 1
    for part in range(parts):
        first_ps = min(first_ps, meeting[_mailbox(parts, state.border[NUMBER], part) + _EARLIEST_PS])
    return int(first_ps)


# ---- mailboxes ------------------------------------------------------------------------------------------------------


@inlined
def _mailbox(parts: int, sender: int, receiver: int) -> int:
    """Return the word at which a mailbox starts."""
    return int(LINES + _PART_LINES * parts * _LINE + (sender * parts + receiver) * _MAILBOX_WORDS)


@inlined
def _send_all(state: State) -> bool:
    """Put packets on links to other parts into mailboxes; return whether there was room for all."""
    border = state.border
    for at in range(LISTS, LISTS + 2 * border[CUTS], 2):
        link = border[at]
        if state.links[link, LINK_FIRST] == NONE:
            continue
        box = _mailbox(border[PARTS], border[NUMBER], border[at + 1])
        while state.links[link, LINK_FIRST] != NONE:
            if state.meeting[box + _COUNT] == MAIL_ROWS:
                return False
            _send(state, link, box)
        state.links[link, LINK_ARRIVES_PS] = NEVER_PS
        schedule_link(state, link)
    return True


@inlined
def _send(state: State, link: int, box: int) -> None:
    """Put the first packet on a link into a mailbox."""
    meeting, packets, packet = state.meeting, state.packets, state.links[link, LINK_FIRST]
    row = box + _LINE + meeting[box + _COUNT] * _MAIL_WORDS
    meeting[row] = link
    for word in range(PACKET_OCTETS + _known_words(state, packets[packet, PACKET_STORED])):
        meeting[row + 1 + word] = packets[packet, word]
    for word in range(PACKET_KIND, PACKET_ROW):
        meeting[row + 1 + word] = packets[packet, word]
    meeting[box + _COUNT] += 1
    meeting[box + _EARLIEST_PS] = min(meeting[box + _EARLIEST_PS], packets[packet, PACKET_ARRIVES_PS])
    state.links[link, LINK_FIRST] = packets[packet, PACKET_NEXT]
    state.links[link, LINK_ARRIVES_PS] = packets[packet, PACKET_NEXT_ARRIVES_PS]
    release_packet(state, packet)


@inlined
def _receive_all(state: State) -> bool:
    """Take packets out of the part's mailboxes; return whether there was memory for all."""
    border, meeting = state.border, state.meeting
    for part in range(border[PARTS]):
        box = _mailbox(border[PARTS], part, border[NUMBER])
        while meeting[box + _TAKEN] < meeting[box + _COUNT]:
            if state.scalars[FREE_PACKETS] < RESERVE:
                return False
            _receive(state, box + _LINE + meeting[box + _TAKEN] * _MAIL_WORDS)
            meeting[box + _TAKEN] += 1
        meeting[box + _COUNT] = meeting[box + _TAKEN] = 0
        meeting[box + _EARLIEST_PS] = NEVER_PS
    return True


@inlined
def _receive(state: State, row: int) -> None:
    """Put a packet of a mailbox on its link."""
    meeting, packets, packet = state.meeting, state.packets, take_packet(state)
    for word in range(PACKET_OCTETS + _known_words(state, meeting[row + 1 + PACKET_STORED])):
        packets[packet, word] = meeting[row + 1 + word]
    for word in range(PACKET_KIND, PACKET_ROW):
        packets[packet, word] = meeting[row + 1 + word]
    put_on_link(state, meeting[row], packet, packets[packet, PACKET_ARRIVES_PS])


@inlined
def _known_words(state: State, stored: int) -> int:
    """Return the words of bytes that a packet has, or that a switch might parse."""
    return int((min(max(stored, state.scalars[PARSE_BYTES]), OCTETS) + 7) // 8)


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
