"""Queues of ports leave room in the buffer that they share, and their counters are read as tc prints them."""

import pytest

from topologies.namespaces.host_network import NetworkError
from topologies.openvswitch.port_queues import port_queue
from topologies.openvswitch.queue_counts import count_commands, queue_counts

_CLASS = (
    "class htb 1:{number:x} parent 1:1 leaf 8001: prio 0 rate 100Kbit ceil 4Mbit burst 7514b cburst 15028b \n"
    " Sent {sent} bytes {packets} pkt (dropped 0, overlimits 0 requeues 0) \n backlog 0b 0p requeues 0\n\n"
)


def _printed(*ports: tuple[int, ...]) -> str:
    root = "class htb 1:1 root rate 4Mbit ceil 4Mbit burst 15028b cburst 15028b \n Sent 9 bytes 9 pkt (dropped 0)\n\n"
    return "".join(
        root + "".join(_CLASS.format(number=0x10 + level, sent=each, packets=level) for level, each in enumerate(sent))
        for sent in ports
    )


@pytest.mark.parametrize(
    ("mtu_bytes", "buffer_bytes", "packets"),
    [
        (1500, 212_992, 34),  # a frame takes 2304 bytes
        (7500, 212_992, 9),  # 8448
        (9000, 212_992, 4),  # 16640
        (9000, 4096, 2),
        (1500, 1 << 24, 60),
    ],
)
def test_full_queues_of_two_ports_leave_room_in_the_send_buffer(
    mtu_bytes: int, buffer_bytes: int, packets: int
) -> None:
    assert port_queue(mtu_bytes, buffer_bytes) == f"bfifo limit {packets * (mtu_bytes + 14)}"


def test_counters_are_read_by_port_and_level() -> None:
    printed = _printed((1, 2, 3, 4, 5, 6, 7, 8), (0, 0, 0, 0, 0, 0, 0, 99))
    counts = queue_counts(printed, ["a", "b"])
    assert counts["a"] == [(1, 0), (2, 1), (3, 2), (4, 3), (5, 4), (6, 5), (7, 6), (8, 7)]
    assert counts["b"][7] == (99, 7)
    assert count_commands(["a", "b"]) == "class show dev a\nclass show dev b\n"


@pytest.mark.parametrize("printed", ["", _printed((1, 2, 3)), _printed((1,) * 8, (1,) * 8)])
def test_other_queues_than_ours_are_named(printed: str) -> None:
    with pytest.raises(NetworkError, match="queues at 1 ports: expected 8 at each"):
        queue_counts(printed, ["a"])
