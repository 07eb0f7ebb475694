"""Frames of real interfaces: one packet socket for all of them, read and written in batches by machine code.

The socket sees every interface of its network namespace; the interface of a frame says its link. A frame from a host
joins the queue of the host's link, and one that reaches the other end of a host's cable leaves through its interface.
The first bytes of a frame lie in its packet, where the program works on them, and the rest in ``payloads``. The kernel
writes both in place, so that neither array may move.

Layouts are those of Linux on 64-bit machines: ``mmsghdr``, ``iovec``, ``sockaddr_ll``, ``tpacket_auxdata``.
"""

from typing import Final

import numpy as np

from emulator.engine.packets import octets_of, release_packet, take_packet
from emulator.engine.queues import enqueue
from emulator.engine.state import (
    FREE_PACKETS,
    LINK_WIRE,
    NONE,
    PACKET_FLOW,
    PACKET_KIND,
    PACKET_LENGTH,
    PACKET_NUMBER,
    PACKET_STORED,
    RAW,
    RESERVE,
    State,
)
from emulator.jit import external, inlined

BATCH: Final = 64
"""Frames that are read or written at once."""

INTERFACE_ROWS: Final = 4096
"""Rows of the table of interfaces: a power of two, sparsely filled."""

# Words of ``wires``.
SOCKET: Final = 0
REQUEST: Final = 1  # what Python wants of the engine: GO, STOP, or a pause, by its number from 1 on
PAUSED: Final = 2  # number of the pause in which the engine is, or was last
BELL: Final = 3  # eventfd that wakes the engine
ANSWER_BELL: Final = 4  # eventfd by which the engine tells that it has paused, or has packets for control planes
START_NS: Final = 5  # monotonic time at which the fabric's clock was 0
OUTGOING: Final = 6  # frames that wait to be sent
FIRST_BYTES: Final = 7  # so many bytes of a frame lie in its packet
PAYLOAD_BYTES: Final = 8  # room for the rest of each packet
OCTETS_AT: Final = 9  # addresses in memory
PAYLOADS_AT: Final = 10
WIRES_AT: Final = 11
CLOCK: Final = 12  # timespec
WAIT: Final = 14  # timespec
POLLED: Final = 16  # two of struct pollfd
BELL_COUNT: Final = 18
HAS_TOLD: Final = 19  # Python knows of the packets for control planes
# What is counted.
RECEIVED: Final = 20
SENT: Final = 21
UNSENT: Final = 22  # the kernel took them not
JUMBO: Final = 23  # longer than the MTU of the wires
RUNT: Final = 24  # shorter than an Ethernet header
UNFINISHED: Final = 25  # without checksums, which the sender leaves to hardware
NO_MEMORY: Final = 26  # frames to be copied, and packets of control planes, for which there was no memory
UNHEARD: Final = 27  # packets for a control plane that took none
STALLED: Final = 28  # times at which nothing was read, for lack of memory
UNKNOWN: Final = 29  # of an interface that is no wire
LONGEST: Final = 30  # bytes of the longest frame
UNWIRED: Final = 31  # reached a NIC without an interface
ROUNDS: Final = 32  # rounds of the engine: it has passed what was due, and has read frames
# Arrays.
RX_HEADERS: Final = 40
TX_HEADERS: Final = RX_HEADERS + 8 * BATCH
RX_VECTORS: Final = TX_HEADERS + 8 * BATCH
TX_VECTORS: Final = RX_VECTORS + 4 * BATCH
RX_NAMES: Final = TX_VECTORS + 4 * BATCH
TX_NAMES: Final = RX_NAMES + 4 * BATCH
RX_CONTROLS: Final = TX_NAMES + 4 * BATCH
RX_PACKETS: Final = RX_CONTROLS + 8 * BATCH
TX_PACKETS: Final = RX_PACKETS + BATCH
INTERFACES: Final = TX_PACKETS + BATCH  # pairs of an interface's index and its link; index 0: free
WIRE_WORDS: Final = INTERFACES + 2 * INTERFACE_ROWS

GO, STOP = 0, -1

NAME_BYTES: Final = 20
CONTROL_BYTES: Final = 64
ETHERNET_BYTES: Final = 14
_DO_NOT_WAIT: Final = 0x40
_REAL_LENGTH: Final = 0x20
_CHECKSUM_NOT_READY: Final = 1 << 3
_HAS_TAG: Final = 1 << 4
_HAS_TAG_TYPE: Final = 1 << 6
_TAG_TYPE: Final = 0x8100
TAG_BYTES: Final = 4
_ADDRESSES_BYTES: Final = 12
_PACKET_FAMILY: Final = 17 | 0x0300 << 16  # AF_PACKET, and ETH_P_ALL in network order

c_recvmmsg = external("recvmmsg", 32, 32, 64, 32, 32, 64)
c_sendmmsg = external("sendmmsg", 32, 32, 64, 32, 32)
c_ppoll = external("ppoll", 32, 64, 64, 64, 64)
c_nanosleep = external("nanosleep", 32, 64, 64)
c_clock_gettime = external("clock_gettime", 32, 32, 64)
c_read = external("read", 64, 32, 64, 64)
c_write = external("write", 64, 32, 64, 64)


@inlined
def wall_ps(state: State) -> int:
    """Return the fabric's time that it is by the machine's monotonic clock."""
    wires = state.wires
    c_clock_gettime(np.int32(1), wires[WIRES_AT] + 8 * CLOCK)
    return int((wires[CLOCK] * 1_000_000_000 + wires[CLOCK + 1] - wires[START_NS]) * 1000)


@inlined
def interface_row(state: State, interface: int) -> int:
    """Return the word of the table at which an interface is, or would be."""
    row = interface & (INTERFACE_ROWS - 1)
    while state.wires[INTERFACES + 2 * row] not in (0, interface):
        row = (row + 1) & (INTERFACE_ROWS - 1)
    return int(INTERFACES + 2 * row)


@inlined
def arm(state: State, row: int) -> None:
    """Take a packet for the next frame of a row."""
    wires, packet = state.wires, take_packet(state)
    wires[RX_PACKETS + row] = packet
    vector = RX_VECTORS + 4 * row
    wires[vector] = wires[OCTETS_AT] + octets_of(state, packet)
    wires[vector + 1] = wires[FIRST_BYTES]
    wires[vector + 2] = wires[PAYLOADS_AT] + packet * wires[PAYLOAD_BYTES]
    wires[vector + 3] = wires[PAYLOAD_BYTES]


@inlined
def receive_frames(state: State) -> int:
    """Read what waits at the socket, at most a batch; return how many frames there were.

    Nothing is read while memory is short: the kernel keeps the frames, and counts those for which it has no room.
    """
    wires, packets = state.wires, state.packets
    if not has_memory_for_frames(state):
        wires[STALLED] += 1
        return 0
    headers = wires[WIRES_AT] + 8 * RX_HEADERS
    flags = np.int32(_DO_NOT_WAIT | _REAL_LENGTH)
    received = c_recvmmsg(np.int32(wires[SOCKET]), headers, np.int32(BATCH), flags, np.int64(0))
    for row in range(received):
        header = RX_HEADERS + 8 * row
        length = wires[header + 7] & 0xFFFFFFFF
        status = wires[RX_CONTROLS + 8 * row + 2] & 0xFFFFFFFF if wires[header + 5] != 0 else 0
        wires[header + 1], wires[header + 5] = NAME_BYTES, CONTROL_BYTES
        place = interface_row(state, wires[RX_NAMES + 4 * row] >> 32)
        if wires[place] == 0:
            wires[UNKNOWN] += 1
        elif length > wires[LONGEST]:
            wires[JUMBO] += 1
        elif length < ETHERNET_BYTES:
            wires[RUNT] += 1
        else:
            wires[RECEIVED] += 1
            if status & _CHECKSUM_NOT_READY:
                wires[UNFINISHED] += 1
            packet = wires[RX_PACKETS + row]
            packets[packet, PACKET_FLOW] = packets[packet, PACKET_NUMBER] = NONE
            packets[packet, PACKET_KIND] = RAW
            packets[packet, PACKET_LENGTH] = length
            packets[packet, PACKET_STORED] = min(length, wires[FIRST_BYTES])
            if status & _HAS_TAG:
                put_tag(state, packet, status, wires[RX_CONTROLS + 8 * row + 4])
            enqueue(state, wires[place + 1], packet, 0)
            arm(state, row)
    return int(received)


@inlined
def has_memory_for_frames(state: State) -> bool:
    """Return whether a batch of frames leaves enough memory for events that copy packets."""
    return bool(state.scalars[FREE_PACKETS] >= 2 * RESERVE + BATCH)


@inlined
def put_tag(state: State, packet: int, status: int, tag: int) -> None:
    """Put the VLAN tag back that the kernel has taken out of a frame."""
    octets, at = state.octets, octets_of(state, packet)
    stored = state.packets[packet, PACKET_STORED]
    for index in range(stored - 1, _ADDRESSES_BYTES - 1, -1):
        octets[at + index + TAG_BYTES] = octets[at + index]
    kind = tag >> 16 & 0xFFFF if status & _HAS_TAG_TYPE else _TAG_TYPE
    for index in range(2):
        octets[at + _ADDRESSES_BYTES + index] = kind >> 8 * (1 - index) & 0xFF
        octets[at + _ADDRESSES_BYTES + 2 + index] = tag >> 8 * (1 - index) & 0xFF
    state.packets[packet, PACKET_STORED] += TAG_BYTES
    state.packets[packet, PACKET_LENGTH] += TAG_BYTES


@inlined
def send_frame(state: State, link: int, packet: int) -> None:
    """Send a packet through the interface at the end of a link, with the next batch."""
    wires, packets = state.wires, state.packets
    row = wires[OUTGOING]
    stored = packets[packet, PACKET_STORED]
    vector = TX_VECTORS + 4 * row
    wires[TX_NAMES + 4 * row] = _PACKET_FAMILY | state.links[link, LINK_WIRE] << 32
    wires[vector] = wires[OCTETS_AT] + octets_of(state, packet)
    wires[vector + 1] = stored
    wires[vector + 2] = wires[PAYLOADS_AT] + packet * wires[PAYLOAD_BYTES]
    wires[vector + 3] = packets[packet, PACKET_LENGTH] - stored
    wires[TX_PACKETS + row] = packet
    wires[OUTGOING] = row + 1
    if row + 1 == BATCH:
        flush_frames(state)


@inlined
def flush_frames(state: State) -> None:
    """Send the frames that wait; one that the kernel does not take is lost and counted."""
    wires = state.wires
    count, done = wires[OUTGOING], 0
    while done < count:
        headers = wires[WIRES_AT] + 8 * (TX_HEADERS + 8 * done)
        sent = c_sendmmsg(np.int32(wires[SOCKET]), headers, np.int32(count - done), np.int32(_DO_NOT_WAIT))
        if sent > 0:
            wires[SENT] += sent
            done += sent
        else:
            wires[UNSENT] += 1
            done += 1
    for row in range(count):
        release_packet(state, wires[TX_PACKETS + row])
    wires[OUTGOING] = 0


@inlined
def refill(state: State, packet: int) -> None:
    """Give a packet that a switch has made shorter as many bytes of its payload as the next switch may parse."""
    octets, payloads, packets = state.octets, state.payloads, state.packets
    stored, length = packets[packet, PACKET_STORED], packets[packet, PACKET_LENGTH]
    moved = min(state.wires[FIRST_BYTES], length) - stored
    if moved > 0:
        to, first = octets_of(state, packet) + stored, packet * state.wires[PAYLOAD_BYTES]
        for index in range(moved):
            octets[to + index] = payloads[first + index]
        for index in range(first, first + length - stored - moved):
            payloads[index] = payloads[index + moved]
        packets[packet, PACKET_STORED] += moved


@inlined
def copy_payload(state: State, packet: int, other: int) -> None:
    """Copy what a packet has beyond its own bytes to a copy of it."""
    size = state.wires[PAYLOAD_BYTES]
    for index in range(state.packets[packet, PACKET_LENGTH] - state.packets[packet, PACKET_STORED]):
        state.payloads[other * size + index] = state.payloads[packet * size + index]


@inlined
def has_memory_for_copies(state: State) -> bool:
    """Return whether an event may copy packets and leave enough for the next one; count it where it may not."""
    if state.scalars[FREE_PACKETS] < 2 * RESERVE:
        state.wires[NO_MEMORY] += 1
        return False
    return True


@inlined
def tell(state: State) -> None:
    """Ring Python's bell."""
    wires = state.wires
    wires[BELL_COUNT] = 1
    c_write(np.int32(wires[ANSWER_BELL]), wires[WIRES_AT] + 8 * BELL_COUNT, np.int64(8))


@inlined
def wait(state: State, wait_ns: int, num_files: int) -> None:
    """Wait for Python's bell, with two files for frames too; at most so long, -1: without end."""
    wires = state.wires
    wires[WAIT] = wait_ns // 1_000_000_000
    wires[WAIT + 1] = wait_ns % 1_000_000_000
    at = wires[WIRES_AT]
    c_ppoll(at + 8 * POLLED, num_files, at + 8 * WAIT if wait_ns >= 0 else np.int64(0), np.int64(0))
    if wires[POLLED] >> 48 & 1:
        c_read(np.int32(wires[BELL]), at + 8 * BELL_COUNT, np.int64(8))


@inlined
def sleep(state: State, wait_ns: int) -> None:
    """Leave the processor to others for a moment."""
    wires = state.wires
    wires[WAIT], wires[WAIT + 1] = 0, wait_ns
    c_nanosleep(wires[WIRES_AT] + 8 * WAIT, np.int64(0))
