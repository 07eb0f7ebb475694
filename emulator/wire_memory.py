"""The memory in which the kernel reads and writes frames: its layout, and the table of interfaces."""

from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

from emulator.engine import state as s
from emulator.engine import wires as w

_READABLE = 1 << 32
"""POLLIN, in the word of a ``pollfd``."""


def attached(state: s.State, packets: int, bell: int, answer_bell: int, mtu_bytes: int) -> s.State:
    """Return a state with memory for real interfaces. None of its arrays may move from now on.

    Args:
        state: With all packets that there will be.
        packets: File of the packet socket.
        bell: File of the event that wakes the engine.
        answer_bell: File of the event by which the engine answers.
        mtu_bytes: The longest IP packet.
    """
    longest = mtu_bytes + w.ETHERNET_BYTES + w.TAG_BYTES
    first = min(s.OCTETS - w.TAG_BYTES, max(int(state.scalars[s.PARSE_BYTES]), s.TEMPLATE))
    room = -(-max(longest - first, 1) // 64) * 64
    wires = np.zeros(w.WIRE_WORDS, dtype=np.int64)
    state = state._replace(wires=wires, payloads=np.zeros(len(state.packets) * room, dtype=np.uint8))
    at = wires.ctypes.data
    wires[[w.SOCKET, w.BELL, w.ANSWER_BELL]] = packets, bell, answer_bell
    wires[[w.FIRST_BYTES, w.PAYLOAD_BYTES, w.LONGEST]] = first, room, longest
    wires[[w.WIRES_AT, w.OCTETS_AT, w.PAYLOADS_AT]] = at, state.octets.ctypes.data, state.payloads.ctypes.data
    wires[w.POLLED], wires[w.POLLED + 1] = bell | _READABLE, packets | _READABLE
    for row in range(w.BATCH):
        for headers, vectors, names in (
            (w.RX_HEADERS, w.RX_VECTORS, w.RX_NAMES),
            (w.TX_HEADERS, w.TX_VECTORS, w.TX_NAMES),
        ):
            header = headers + 8 * row
            wires[header : header + 4] = at + 8 * (names + 4 * row), w.NAME_BYTES, at + 8 * (vectors + 4 * row), 2
        header = w.RX_HEADERS + 8 * row
        wires[header + 4 : header + 6] = at + 8 * (w.RX_CONTROLS + 8 * row), w.CONTROL_BYTES
    return state


def know_interfaces(wires: NDArray[np.int64], links: Mapping[int, int]) -> None:
    """Fill the table of interfaces: links by index, of which 0 stands for no interface."""
    wires[w.INTERFACES :] = 0
    for index, link in links.items():
        if index == 0:
            continue
        row = index % w.INTERFACE_ROWS
        while wires[w.INTERFACES + 2 * row]:
            row = (row + 1) % w.INTERFACE_ROWS
        wires[w.INTERFACES + 2 * row], wires[w.INTERFACES + 2 * row + 1] = index, link
