"""Packets at the ports of switches, kept by the event loop until Python takes them (``emulator.port_files``)."""

from typing import Final

import numpy as np

from emulator.engine.packets import octets_of
from emulator.engine.state import (
    NONE,
    NOW_PS,
    OCTETS,
    PACKET_FLOW,
    PACKET_LENGTH,
    PACKET_NUMBER,
    PACKET_STORED,
    RECORDED,
    RESERVE,
    State,
)
from emulator.jit import inlined

# Columns of ``records``.
RECORD_TIME_PS: Final = 0
RECORD_LINK: Final = 1  # by which the packet comes or leaves
RECORD_IS_ARRIVAL: Final = 2
RECORD_LENGTH: Final = 3
RECORD_KNOWN: Final = 4  # bytes in ``recorded``, from the first
RECORD_NUMBER: Final = 5  # that Python has given the packet, or NONE
RECORD_COLUMNS: Final = 6

_ROWS: Final = 4096


@inlined
def record(state: State, link: int, is_arrival: int, packet: int) -> None:
    """Keep a copy of a packet if packets are recorded; the event loop stops before there is no room for one."""
    if len(state.records) > 0:
        rows, row, packets = state.records, state.scalars[RECORDED], state.packets
        stored, length = packets[packet, PACKET_STORED], packets[packet, PACKET_LENGTH]
        rows[row, RECORD_TIME_PS] = state.scalars[NOW_PS]
        rows[row, RECORD_LINK] = link
        rows[row, RECORD_IS_ARRIVAL] = is_arrival
        rows[row, RECORD_LENGTH] = length
        rows[row, RECORD_NUMBER] = packets[packet, PACKET_NUMBER] if packets[packet, PACKET_FLOW] == NONE else NONE
        known, first, to = min(stored, length), octets_of(state, packet), row * (len(state.recorded) // len(rows))
        for index in range(known):
            state.recorded[to + index] = state.octets[first + index]
        if len(state.payloads) > 0:
            first = packet * (len(state.payloads) // len(packets)) - known
            for index in range(known, length):
                state.recorded[to + index] = state.payloads[first + index]
            known = length
        rows[row, RECORD_KNOWN] = known
        state.scalars[RECORDED] += 1


def with_records(state: State) -> State:
    """Return a state that records packets, with room for all bytes of each that there can be."""
    longest = OCTETS + len(state.payloads) // len(state.packets)
    records = np.zeros((_ROWS + RESERVE, RECORD_COLUMNS), dtype=np.int64)
    return state._replace(records=records, recorded=np.zeros(len(records) * longest, dtype=np.uint8))


def without_records(state: State) -> State:
    """Return a state that records nothing; packets that were recorded are for others to take."""
    return state._replace(records=state.records[:0], recorded=state.recorded[:0])
