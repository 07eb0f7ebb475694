"""What the engine works on: rows of integers, one array per kind of thing, and the names of their columns.

Times are picoseconds, sizes bytes. Links are numbered as in ``topologies.fabric``; the egress queues of a port are
those of the link that leaves it.
"""

from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

Integer = int | np.int64 | np.uint64

LEVELS: Final = 8
QUEUES: Final = LEVELS + 1  # the last is for acknowledgements, which go before all data
NONE: Final = -1

# Packets. All of one lies together, in whole lines of the processor's cache, so many words as PACKET_WORDS says: what
# switches need of every packet, its bytes, what hosts need, and from PACKET_ROW on the words that it takes through a
# queue.
PACKET_NEXT: Final = 0  # next packet of the same queue, on the same link, or of the free list
PACKET_LENGTH: Final = 1  # bytes on the wire, Ethernet header to end of payload
PACKET_STORED: Final = 2  # the first so many are stored; the rest are zeros that nobody keeps
PACKET_ENQUEUED_PS: Final = 3
PACKET_DEPTH: Final = 4  # packets in the queue when it came
PACKET_ARRIVES_PS: Final = 5  # at the end of the link that it is on
PACKET_NEXT_ARRIVES_PS: Final = 6  # when the next packet on the same link does
PACKET_FLOW: Final = 7  # the flow of a host's transport, or NONE
PACKET_OCTETS: Final = 8
OCTETS: Final = 512
PACKET_KIND: Final = PACKET_OCTETS + OCTETS // 8
PACKET_NUMBER: Final = PACKET_KIND + 1  # data: the packet's in its flow; acknowledgement: the number expected next
PACKET_RECEIVED: Final = (
    PACKET_KIND + 2
)  # acknowledgement: bit i: expected + 1 + i has come; data: 1 asks for an answer
PACKET_ROW: Final = PACKET_KIND + 3
DATA, ACKNOWLEDGEMENT, RAW = 0, 1, 2
ANSWER: Final = 3  # an acknowledgement that data asked for
CONTROL_PLANE: Final = -1

# Links, each with the eight queues of its egress port.
LINK_FREE_PS: Final = 0  # when the packet on the link is sent
LINK_SOURCE_SWITCH: Final = 1  # NONE where a host sends
LINK_SOURCE_PORT: Final = 2
LINK_DESTINATION_SWITCH: Final = 3  # NONE where a host receives
LINK_DESTINATION_PORT: Final = 4
LINK_DELAY_PS: Final = 5
LINK_QUEUE_LIMIT_BYTES: Final = 6
LINK_OCCUPIED: Final = 7  # bit per level: its queue is not empty
LINK_ADDRESS: Final = 8  # IPv4 address of the NIC that receives, where a host does; CONTROL_PLANE at a CPU port
LINK_WAITED_FOR: Final = 9  # something will start it: the event loop now, or an event when it is free
LINK_UP: Final = 10
LINK_FIRST: Final = 11  # first of the packets on the link, or NONE
LINK_LAST: Final = 12
LINK_ARRIVES_PS: Final = 13  # when the first packet on the link does
LINK_STARTS_PS: Final = 14  # when the next packet is to be sent, where that is known
# Of each queue, those of level n behind n * QUEUE_COLUMNS others: what a packet needs lies together.
LINK_HEAD: Final = 15
LINK_TAIL: Final = 16
LINK_PACKETS: Final = 17
LINK_BYTES: Final = 18
LINK_SENT_BYTES: Final = 19
QUEUE_COLUMNS: Final = 5
LINK_COLUMNS: Final = LINK_HEAD + QUEUES * QUEUE_COLUMNS

# Flows of the hosts' transport; numbers count packets from the flow's first.
FLOW_SOURCE_LINK: Final = 0
FLOW_DESTINATION_LINK: Final = 1  # the receiver's link, for acknowledgements
FLOW_HEADER_BYTES: Final = 2
FLOW_MTU_BYTES: Final = 3  # payload of a full packet
FLOW_WINDOW: Final = 4  # packets in flight at most
FLOW_LAST: Final = 5  # one past the last packet to send
FLOW_TAIL_BYTES: Final = 6  # payload of the last packet
FLOW_NEXT: Final = 7  # number to send next
FLOW_UNACKNOWLEDGED: Final = 8  # lowest number not acknowledged
FLOW_RETRANSMITTED: Final = 9  # highest number sent again since the last question
FLOW_EXPECTED: Final = 10  # lowest number the receiver lacks
FLOW_RECEIVED: Final = 11  # bit i: the receiver has expected + 1 + i
FLOW_UNANSWERED: Final = 12  # packets since the last acknowledgement
FLOW_TIMER_ARMED: Final = 13
FLOW_PROGRESS_PS: Final = 14  # when something new was acknowledged, or the sender asked
FLOW_ASKED: Final = 15  # one past the highest number sent when the sender asked what has come
FLOW_LEVEL: Final = 16  # queue at the sending host's NIC
FLOW_ACKNOWLEDGE_EVERY: Final = 17
FLOW_RETRANSMISSIONS: Final = 18
FLOW_COLUMNS: Final = 19
TEMPLATE: Final = 64  # bytes of a flow's header templates: data, then acknowledgement

# Packets that have reached a host or a control plane and belong to no flow, in order.
CAPTURE_LINK: Final = 0
CAPTURE_PACKET: Final = 1
CAPTURE_TIME_PS: Final = 2

# Trace of what queues and links did.
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
BLOCK_WORDS: Final = 10
BLOCKS: Final = 11  # where the switches' blocks start in memory
PARSE_BYTES: Final = 12
IDLE_UNTIL_PS: Final = 13  # the time that the event loop was last asked for and has reached
SCALARS: Final = 14

# Reasons why a switch drops, as columns of ``drops``; a row per switch, and one for what hosts lose at index NONE, the
# last.
BY_PROGRAM, NO_PORT, QUEUE_FULL, NO_PIPELINE, TOO_LONG, LINK_DOWN, NO_GROUP, TOO_MANY_PASSES = 0, 1, 2, 3, 4, 5, 6, 7
DROP_REASONS: Final = 8

# Copies that a multicast group or clone session may ask for: one for every port.
MAX_REPLICAS: Final = 511

# A packet may be copied, resubmitted or recirculated, and what comes of it again: so often in a row in one switch.
MAX_PASSES: Final = 64

# Room that one event may need: a packet that is cloned and multicast, and what its copies set going.
RESERVE: Final = 2 * MAX_REPLICAS + 66


class State(NamedTuple):
    """All arrays of a fabric but the switches' memory. Python may change them only while the engine stands.

    ``packets`` has a row per packet; ``words`` and ``octets`` are the same memory as one sequence of words or bytes.
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
    ready: NDArray[np.int64]
    drops: NDArray[np.int64]
    flows: NDArray[np.int64]
    templates: NDArray[np.uint8]
    completions: NDArray[np.int64]
    captures: NDArray[np.int64]
    kicks: NDArray[np.int64]
    trace: NDArray[np.int64]
