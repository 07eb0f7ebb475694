"""The pools and what the driver reserves fit into the smallest chip."""

from topologies.tofino.buffers import (
    BUFFER_CELLS,
    EGRESS_POOL_CELLS,
    INGRESS_POOL_CELLS,
    PORT_SHARE_CELLS,
    QUEUE_SHARE_CELLS,
    RESERVED_EGRESS_CELLS,
    RESERVED_INGRESS_CELLS,
)


def test_pools_leave_what_the_driver_reserves() -> None:
    # The driver's own pools and reservations together are 100 K cells on each side.
    assert RESERVED_INGRESS_CELLS + 89_260 == RESERVED_EGRESS_CELLS + 30_284 == 100 * 1024
    assert INGRESS_POOL_CELLS + RESERVED_INGRESS_CELLS <= BUFFER_CELLS
    assert EGRESS_POOL_CELLS + RESERVED_EGRESS_CELLS <= BUFFER_CELLS


def test_packets_are_lost_at_queues() -> None:
    assert EGRESS_POOL_CELLS < INGRESS_POOL_CELLS
    assert 8 * QUEUE_SHARE_CELLS < PORT_SHARE_CELLS
