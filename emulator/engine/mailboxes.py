"""Mailboxes of the parts of a fabric, by which packets pass from one part to another."""

from collections.abc import Sequence

from emulator.engine.border import (
    COUNT,
    CUTS,
    EARLIEST_PS,
    LISTS,
    MAIL_ROWS,
    MAIL_WORDS,
    MAILBOX_WORDS,
    NUMBER,
    PARTS,
    TAKEN,
    mailbox,
    mailboxes,
)
from emulator.engine.events import NEVER_PS, schedule_link
from emulator.engine.packets import WORDS_IN_LINE, release_packet, take_packet
from emulator.engine.queues import put_on_link
from emulator.engine.state import (
    FREE_PACKETS,
    LINK_ARRIVES_PS,
    LINK_FIRST,
    NONE,
    OCTETS,
    PACKET_ARRIVES_PS,
    PACKET_KIND,
    PACKET_NEXT,
    PACKET_NEXT_ARRIVES_PS,
    PACKET_OCTETS,
    PACKET_ROW,
    PACKET_STORED,
    PARSE_BYTES,
    RESERVE,
    State,
)
from emulator.jit import inlined


def earliest_mail_ps(states: Sequence[State]) -> int:
    """Return when the first packet arrives that is on its way between two parts; NEVER_PS if there is none."""
    if len(states) == 1:
        return NEVER_PS
    return int(states[0].meeting[mailboxes(len(states)) + EARLIEST_PS :: MAILBOX_WORDS].min())


def has_mail(states: Sequence[State]) -> bool:
    """Return whether a packet is on its way between two parts, and in none of them."""
    return earliest_mail_ps(states) < NEVER_PS


@inlined
def earliest_sent_ps(state: State) -> int:
    """Return when the first packet arrives that the part has sent and nobody has taken; NEVER_PS if there is none."""
    first_ps, parts = NEVER_PS, state.border[PARTS]
    for part in range(parts):
        first_ps = min(first_ps, state.meeting[mailbox(parts, state.border[NUMBER], part) + EARLIEST_PS])
    return int(first_ps)


@inlined
def send_all(state: State) -> bool:
    """Put packets on links to other parts into mailboxes; return whether there was room for all."""
    border = state.border
    for at in range(LISTS, LISTS + 2 * border[CUTS], 2):
        link = border[at]
        if state.links[link, LINK_FIRST] == NONE:
            continue
        box = mailbox(border[PARTS], border[NUMBER], border[at + 1])
        while state.links[link, LINK_FIRST] != NONE:
            if state.meeting[box + COUNT] == MAIL_ROWS:
                return False
            _send(state, link, box)
        state.links[link, LINK_ARRIVES_PS] = NEVER_PS
        schedule_link(state, link)
    return True


@inlined
def _send(state: State, link: int, box: int) -> None:
    """Put the first packet on a link into a mailbox."""
    meeting, packets, packet = state.meeting, state.packets, state.links[link, LINK_FIRST]
    row = box + WORDS_IN_LINE + meeting[box + COUNT] * MAIL_WORDS
    meeting[row] = link
    for word in range(PACKET_OCTETS + _known_words(state, packets[packet, PACKET_STORED])):
        meeting[row + 1 + word] = packets[packet, word]
    for word in range(PACKET_KIND, PACKET_ROW):
        meeting[row + 1 + word] = packets[packet, word]
    meeting[box + COUNT] += 1
    meeting[box + EARLIEST_PS] = min(meeting[box + EARLIEST_PS], packets[packet, PACKET_ARRIVES_PS])
    state.links[link, LINK_FIRST] = packets[packet, PACKET_NEXT]
    state.links[link, LINK_ARRIVES_PS] = packets[packet, PACKET_NEXT_ARRIVES_PS]
    release_packet(state, packet)


@inlined
def receive_all(state: State) -> bool:
    """Take packets out of the part's mailboxes; return whether there was memory for all."""
    border, meeting = state.border, state.meeting
    for part in range(border[PARTS]):
        box = mailbox(border[PARTS], part, border[NUMBER])
        while meeting[box + TAKEN] < meeting[box + COUNT]:
            if state.scalars[FREE_PACKETS] < RESERVE:
                return False
            _receive(state, box + WORDS_IN_LINE + meeting[box + TAKEN] * MAIL_WORDS)
            meeting[box + TAKEN] += 1
        meeting[box + COUNT] = meeting[box + TAKEN] = 0
        meeting[box + EARLIEST_PS] = NEVER_PS
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
