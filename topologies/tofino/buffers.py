"""How the packet buffer of a first-generation Tofino is shared: one pool for all data, without reserved classes.

Sizes are in cells. The chip counts a packet twice, as it comes in and as it waits to leave, against limits of both
sides. Facts, also what the driver reserves by itself, are from the SDE in github.com/p4lang/open-p4studio,
``pkgsrc/bf-drivers/src/traffic_mgr/init/tm_tofino.h`` and ``tm_tofino_default.h``. The driver shares out 100 K cells of
the 260 K that even the smallest chip has; here pools take most of the rest.
"""

from topologies.targets import TOFINO_CELL_BYTES
from topologies.tofino.ports import GROUPS_PER_PIPE, LANES_PER_GROUP, PIPES, QUEUES_PER_GROUP

CELL_BYTES = TOFINO_CELL_BYTES
BUFFER_CELLS = 260 * 1024
"""Of the chips with 18 or 32 ports of 100 Gbit/s; that with 64 has 280 K."""

QUEUE_GUARANTEED_CELLS = 20
"""A packet of 1600 bytes, for each queue: the driver's default."""
PORT_GUARANTEED_CELLS = 40
"""Two packets, for what comes in by each port: the driver's default."""

_QUEUES = PIPES * GROUPS_PER_PIPE * QUEUES_PER_GROUP
_PORTS = PIPES * (GROUPS_PER_PIPE * LANES_PER_GROUP + 1)
_MIRRORED_CELLS = 20 * _PORTS // PIPES
_CUT_THROUGH_CELLS = 4096 + 8192
_MULTICAST_CELLS = 12_288

RESERVED_INGRESS_CELLS = PORT_GUARANTEED_CELLS * _PORTS + _MIRRORED_CELLS
RESERVED_EGRESS_CELLS = QUEUE_GUARANTEED_CELLS * _QUEUES + _MULTICAST_CELLS + _CUT_THROUGH_CELLS + _MIRRORED_CELLS
"""What stands beside the pool on each side."""

EGRESS_POOL_CELLS = 180 * 1024
INGRESS_POOL_CELLS = 240 * 1024
"""Larger than the other side's, so that packets are lost at full queues and not where they come in."""

QUEUE_SHARE_CELLS = EGRESS_POOL_CELLS // _QUEUES
PORT_SHARE_CELLS = INGRESS_POOL_CELLS // _PORTS
"""What a queue, or a port's incoming packets, may take of the pool when nothing of it is free."""

HYSTERESIS_CELLS = 32
"""How far a queue has to fall below its limit until it takes packets again: the driver's default."""

BURST_BYTES = 16_384
"""What a shaped port may send at once: nearly two jumbo frames, the driver's default."""
