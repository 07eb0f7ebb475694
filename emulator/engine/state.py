"""State of the engine: one array of integer rows per kind of object, and the names of their columns.

Times are in picoseconds, sizes in bytes. Links are numbered as in ``topologies.fabric``; a port's egress queues are
those of the link that leaves it.
"""

from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from emulator.native.callable import separate_arrays

Integer = int | np.int64 | np.uint64

LEVELS: Final = 8
QUEUES: Final = LEVELS + 1  # the last queue holds acknowledgements, which precede all data
NONE: Final = -1

# Packets. All words of a packet lie together in whole cache lines, PACKET_WORDS of them: first what switches need of
# every packet, then its bytes, then what hosts need, and from PACKET_ROW on the words that it keeps in a queue.
PACKET_NEXT: Final = 0  # next packet of the same queue, link or free list
PACKET_LENGTH: Final = 1  # bytes on the wire, from Ethernet header to end of payload
PACKET_STORED: Final = 2  # number of stored bytes, from the first; the rest are zeros
PACKET_ENQUEUED_PS: Final = 3
PACKET_DEPTH: Final = 4  # packets in the queue when it arrived there
PACKET_ARRIVES_PS: Final = 5  # at the end of the link that it is on
PACKET_PORT: Final = 5  # before that: its egress port, if that port has no cable
PACKET_NEXT_ARRIVES_PS: Final = 6  # arrival of the next packet on the same link
PACKET_FLOW: Final = 7  # flow of a host's transport, or NONE
PACKET_OCTETS: Final = 8
OCTETS: Final = 512
PACKET_KIND: Final = PACKET_OCTETS + OCTETS // 8
PACKET_NUMBER: Final = PACKET_KIND + 1  # data: packet number in its flow; acknowledgement: next number expected
PACKET_RECEIVED: Final = PACKET_KIND + 2  # acknowledgement: bit i: expected + 1 + i arrived; data: QUESTION or URGENT
PACKET_MARKS: Final = PACKET_KIND + 3  # acknowledgement: marked packets that have arrived so far
PACKET_ROW: Final = PACKET_KIND + 4
DATA, ACKNOWLEDGEMENT, RAW = 0, 1, 2
ANSWER: Final = 3  # an acknowledgement that a question requested
QUESTION, URGENT = 1, 2  # data that asks what has arrived after a timeout, or to be acknowledged at once
CONTROL_PLANE: Final = -1
NOWHERE: Final = -2

# Links, each with the eight queues of its egress port.
LINK_FREE_PS: Final = 0  # time at which the packet being sent is finished
LINK_SOURCE_SWITCH: Final = 1  # NONE where a host sends
LINK_SOURCE_PORT: Final = 2  # NONE where packets for all ports without a cable leave
LINK_DESTINATION_SWITCH: Final = 3  # NONE where a host receives
LINK_DESTINATION_PORT: Final = 4
LINK_DELAY_PS: Final = 5
LINK_QUEUE_LIMIT_BYTES: Final = 6
LINK_OCCUPIED: Final = 7  # bit per level: its queue is not empty
LINK_ADDRESS: Final = 8  # IPv4 address of the receiving NIC; CONTROL_PLANE at a CPU port; NOWHERE without a cable
LINK_WAITED_FOR: Final = 9  # something will start it: the event loop now, or an event when the link is free
LINK_UP: Final = 10
LINK_FIRST: Final = 11  # first of the packets on the link, or NONE
LINK_LAST: Final = 12
LINK_ARRIVES_PS: Final = 13  # arrival of the first packet on the link
LINK_STARTS_PS: Final = 14  # time at which the next packet starts, if known
# Columns of each queue, level n after n * QUEUE_COLUMNS others: what one packet needs lies together.
LINK_HEAD: Final = 15
LINK_TAIL: Final = 16
LINK_PACKETS: Final = 17
LINK_BYTES: Final = 18
LINK_SENT_BYTES: Final = 19
QUEUE_COLUMNS: Final = 5
LINK_WIRE: Final = LINK_HEAD + QUEUES * QUEUE_COLUMNS  # index of the real interface at its end, 0: none
LINK_COLUMNS: Final = LINK_WIRE + 1

# Flows of the hosts' transport; numbers count packets from the flow's first one.
FLOW_SOURCE_LINK: Final = 0
FLOW_DESTINATION_LINK: Final = 1  # the receiver's link, for acknowledgements
FLOW_HEADER_BYTES: Final = 2
FLOW_MTU_BYTES: Final = 3  # payload of a full packet
FLOW_WINDOW: Final = 4  # maximum packets in flight
FLOW_LAST: Final = 5  # one past the last packet to send
FLOW_TAIL_BYTES: Final = 6  # payload of the last packet
FLOW_NEXT: Final = 7  # number to send next
FLOW_UNACKNOWLEDGED: Final = 8  # lowest unacknowledged number
FLOW_RETRANSMITTED: Final = 9  # highest retransmitted number since the last question
FLOW_EXPECTED: Final = 10  # lowest number missing at the receiver
FLOW_RECEIVED: Final = 11  # bit i: the receiver has expected + 1 + i
FLOW_UNANSWERED: Final = 12  # packets since the last acknowledgement
FLOW_TIMER_ARMED: Final = 13
FLOW_PROGRESS_PS: Final = 14  # time of the last new acknowledgement or question
FLOW_ASKED: Final = 15  # one past the highest number sent at the last question
FLOW_LEVEL: Final = 16  # queue at the sending host's NIC
FLOW_ACKNOWLEDGE_EVERY: Final = 17
FLOW_RETRANSMISSIONS: Final = 18
FLOW_WAITING: Final = 19  # data packets in the queues of the sending host's NIC
FLOW_HAS_GAPS: Final = 20  # the last acknowledgement has shown lost packets
FLOW_COLUMNS: Final = 21

# Senders with a congestion control, one row per flow; empty where no flow has one.
SENDER_CONTROL: Final = 0  # index of the flow's control, or NONE: a fixed window
SENDER_TOS: Final = 1  # of its data: whether it is ECN-capable
SENDER_HAS_STARTED: Final = 2
SENDER_ARRIVED: Final = 3  # bit i: FLOW_UNACKNOWLEDGED + 1 + i has arrived
SENDER_DELIVERED: Final = 4  # packets known to have arrived
SENDER_MARKED: Final = 5  # of these known to be marked
SENDER_NEWEST: Final = 6  # highest number known to have arrived
SENDER_LOST_END: Final = 7  # numbers below it that have not arrived are lost, or were sent again
SENDER_RECOVERY_END: Final = 8  # numbers from it on were sent after the last loss was found
SENDER_IS_RECOVERING: Final = 9
SENDER_IS_LIMITED: Final = 10  # the window has kept packets back since the last acknowledgement
SENDER_RTT_PS: Final = 11  # last sample, 0: none yet
SENDER_LAST_SENT_PS: Final = 12
SENDER_TIMEOUTS: Final = 13
RECEIVER_MARKED: Final = 14  # marked packets that have reached the receiver
SENDER_SENT_PS: Final = 16  # when number n left the NIC, at n % 64; NONE if it was sent again
SENDER_COLUMNS: Final = SENDER_SENT_PS + 64
WINDOW: Final = 0  # column of ``windows``: the flow's window in packets; its control's words follow
TEMPLATE: Final = 64  # bytes of a flow's header templates: data, then acknowledgement

# Packets that reached a host or a control plane and belong to no flow, in order.
CAPTURE_LINK: Final = 0
CAPTURE_PACKET: Final = 1
CAPTURE_TIME_PS: Final = 2

# Trace of queue and link events.
TRACE_TIME_PS: Final = 0
TRACE_KIND: Final = 1
TRACE_LINK: Final = 2
TRACE_LEVEL: Final = 3
TRACE_FLOW: Final = 4
TRACE_NUMBER: Final = 5
TRACE_LENGTH: Final = 6
TRACE_COLUMNS: Final = 7
QUEUED, STARTED, LOST = 0, 1, 2

# Scalars.
NOW_PS: Final = 0
FREE_PACKET: Final = 1
FREE_PACKETS: Final = 2
COMPLETIONS: Final = 3
CAPTURES: Final = 4
TRACED: Final = 5
KICKED: Final = 6
HOPS: Final = 7
MISDELIVERED: Final = 8
PACKET_WORDS: Final = 9
PROGRAM: Final = 10  # number of the program whose event loop runs
WANTED_PROGRAM: Final = 11  # number of the program that must process the next event; 0: the same one
PARSE_BYTES: Final = 12
IDLE_UNTIL_PS: Final = 13  # last requested time that the event loop has reached
FIRST_NOWHERE: Final = 14  # first of the switches' links for packets to ports without a cable
FIRST_WAY_BACK: Final = 15  # first of the links that bring packets back to their switches, where a program copies some
RECORDED: Final = 16  # rows of ``records``
SCALARS: Final = 17

# Drop reasons, as columns of ``drops``. Each switch has a row; the last row, at index NONE, counts the losses of hosts.
BY_PROGRAM, NO_PORT, QUEUE_FULL, NO_PIPELINE, TOO_LONG, LINK_DOWN, NO_GROUP, TOO_MANY_PASSES = 0, 1, 2, 3, 4, 5, 6, 7
TOO_MANY_REPEATS, FAILED_ASSERTION = 8, 9  # in the order of what actions put into a packet's word to halt it
DROP_REASONS: Final = 10

# Maximum copies of a multicast group or clone session: one for every port.
MAX_REPLICAS: Final = 511

# Maximum times in a row that a packet and its copies may be copied, resubmitted or recirculated in one switch.
MAX_PASSES: Final = 64

# Room for the copies of one event: a packet that is cloned and multicast, and what its copies start.
RESERVE: Final = 2 * MAX_REPLICAS + 66


@separate_arrays(
    views={"words": "packets", "octets": "packets"}, signed={"programs", "drops"}, resized={"packets", "windows"}
)
class State(NamedTuple):
    """All arrays of a fabric except the switches' memory. Python may change them only between runs of the engine.

    ``packets`` has a row per packet; ``words`` and ``octets`` are views of the same memory as words and bytes.
    ``senders`` and ``windows`` have a row per flow in programs with congestion controls, and are empty in others.
    ``programs`` has the number of each switch's program, from 1 on, or 0 where it has none. Its last row, at index
    NONE, stands for hosts and is 0. ``blocks`` has the memory offset of each switch's descriptors, and ``loops`` the
    address of each program's event loop, by its number. The last row of ``drops`` is that of hosts. ``records`` and
    ``recorded`` are those of ``emulator.engine.recording``, empty where no packets are recorded. ``wires`` and
    ``payloads`` are those of ``emulator.engine.wires``, empty where no real interface is attached. ``border`` and
    ``meeting`` are those of ``emulator.engine.border``, empty where one core runs the whole fabric.
    """

    scalars: NDArray[np.int64]
    calendar: NDArray[np.int64]
    timers: NDArray[np.int64]
    packets: NDArray[np.int64]
    words: NDArray[np.uint64]
    octets: NDArray[np.uint8]
    phv: NDArray[np.uint64]
    links: NDArray[np.int64]
    ps_per_byte: NDArray[np.float64]
    port_links: NDArray[np.int64]
    programs: NDArray[np.int64]
    blocks: NDArray[np.int64]
    loops: NDArray[np.int64]
    drops: NDArray[np.int64]
    flows: NDArray[np.int64]
    templates: NDArray[np.uint8]
    senders: NDArray[np.int64]
    windows: NDArray[np.float64]
    completions: NDArray[np.int64]
    captures: NDArray[np.int64]
    kicks: NDArray[np.int64]
    trace: NDArray[np.int64]
    records: NDArray[np.int64]
    recorded: NDArray[np.uint8]
    wires: NDArray[np.int64]
    payloads: NDArray[np.uint8]
    border: NDArray[np.int64]
    meeting: NDArray[np.int64]
