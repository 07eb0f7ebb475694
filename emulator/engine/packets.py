"""Memory of the packets of a fabric, and the list of free packets."""

import numpy as np
from numpy.typing import NDArray

from emulator.engine.state import (
    CAPTURE_LINK,
    CAPTURE_PACKET,
    CAPTURE_TIME_PS,
    CAPTURES,
    FREE_PACKET,
    FREE_PACKETS,
    PACKET_LENGTH,
    PACKET_NEXT,
    PACKET_OCTETS,
    PACKET_ROW,
    PACKET_STORED,
    PACKET_WORDS,
    Integer,
    State,
)
from emulator.jit import compiled, inlined

WORDS_IN_LINE = 8
"""Words in a line of the processor's cache."""


@inlined
def octets_of(state: State, packet: Integer) -> int:
    """Return the index in ``octets`` at which a packet's bytes start."""
    return 8 * int(packet * state.scalars[PACKET_WORDS] + PACKET_OCTETS)


@inlined
def row_of(state: State, packet: Integer) -> int:
    """Return the index in ``words`` at which the words start that a packet keeps in a queue."""
    return int(packet * state.scalars[PACKET_WORDS] + PACKET_ROW)


@inlined
def take_packet(state: State) -> int:
    """Take a packet from the free list; the event loop ensures that there is one."""
    packet = state.scalars[FREE_PACKET]
    state.scalars[FREE_PACKET] = state.packets[packet, PACKET_NEXT]
    state.scalars[FREE_PACKETS] -= 1
    return int(packet)


@inlined
def copy_packet(state: State, packet: int) -> int:
    """Take a packet from the free list and copy another one into it."""
    other = take_packet(state)
    for word in range(state.scalars[PACKET_WORDS]):
        state.packets[other, word] = state.packets[packet, word]
    return other


@inlined
def release_packet(state: State, packet: int) -> None:
    """Put a packet back on the free list."""
    state.packets[packet, PACKET_NEXT] = state.scalars[FREE_PACKET]
    state.scalars[FREE_PACKET] = packet
    state.scalars[FREE_PACKETS] += 1


@compiled
def _release_captured(state: State) -> None:
    for row in range(state.scalars[CAPTURES]):
        release_packet(state, state.captures[row, CAPTURE_PACKET])
    state.scalars[CAPTURES] = 0


def take_captured(state: State) -> list[tuple[int, int, bytes, int]]:
    """Return and free the packets that reached hosts and control planes: link, time, known bytes and length."""
    captures = state.captures[: state.scalars[CAPTURES]]
    packets = captures[:, CAPTURE_PACKET]
    starts = 8 * (packets * state.scalars[PACKET_WORDS] + PACKET_OCTETS)
    ends = starts + state.packets[packets, PACKET_STORED]
    lengths = state.packets[packets, PACKET_LENGTH]
    known = [state.octets[start:end].tobytes() for start, end in zip(starts.tolist(), ends.tolist(), strict=True)]
    if len(state.payloads):
        firsts = packets * (len(state.payloads) // len(state.packets))
        lasts = firsts + lengths - (ends - starts)
        bounds = zip(known, firsts.tolist(), lasts.tolist(), strict=True)
        known = [octets + state.payloads[first:last].tobytes() for octets, first, last in bounds]
    columns = captures[:, CAPTURE_LINK].tolist(), captures[:, CAPTURE_TIME_PS].tolist(), known, lengths.tolist()
    found = list(zip(*columns, strict=True))
    _release_captured(state)
    return found


def packet_words(row_words: int) -> int:
    """Return the words per packet for rows of ``row_words``: an odd number of lines, to spread over the whole cache."""
    lines = -(-(PACKET_ROW + row_words) // WORDS_IN_LINE)
    return WORDS_IN_LINE * (lines | 1)


def with_packets(state: State, num_packets: int) -> State:
    """Return a state with room for ``num_packets`` packets; existing ones keep their numbers, the others are free."""
    before, num_words = len(state.packets), int(state.scalars[PACKET_WORDS])
    words = _aligned_zeros(num_packets * num_words)
    words[: len(state.words)] = state.words
    packets = words.view(np.int64).reshape(num_packets, num_words)
    packets[before:, PACKET_NEXT] = np.arange(before + 1, num_packets + 1)
    packets[-1, PACKET_NEXT] = state.scalars[FREE_PACKET]
    state.scalars[FREE_PACKET] = before
    state.scalars[FREE_PACKETS] += num_packets - before
    return state._replace(packets=packets, words=words, octets=words.view(np.uint8))


def with_rows(state: State, row_words: int) -> State:
    """Return a state whose packets have rows of at least ``row_words``; they keep their numbers and what they hold."""
    before = int(state.scalars[PACKET_WORDS])
    num_words = max(before, packet_words(row_words))
    if num_words == before:
        return state
    words = _aligned_zeros(len(state.packets) * num_words)
    packets = words.view(np.int64).reshape(len(state.packets), num_words)
    packets[:, :before] = state.packets
    state.scalars[PACKET_WORDS] = num_words
    return state._replace(packets=packets, words=words, octets=words.view(np.uint8))


def _aligned_zeros(num_words: int) -> NDArray[np.uint64]:
    words = np.zeros(num_words + WORDS_IN_LINE, dtype=np.uint64)
    first = -(words.ctypes.data // words.itemsize) % WORDS_IN_LINE
    return words[first : first + num_words]
