"""Queues in strict priority on the ports of Open vSwitch, which packets enter by their DSCP.

The userspace datapath of Open vSwitch does not put packets into queues: ``set_queue`` has no effect there. The kernel's
own classifier does, by the DSCP that the first switch has written.

Its ports send by one socket, whose buffer all waiting packets share. When the less urgent ones have filled it, urgent
ones are lost before they reach their queue. So queues are short: full ones of two ports leave room in the buffer.

They are limited in bytes. Among a few packets, acknowledgements would take the places of data: urgent flows then lose
packets whenever the switch is late. Packets of 1500 bytes take half as much of the buffer more than long ones, and just
fit; a flood of smaller ones can still fill it.
"""

from pathlib import Path

from topologies.namespaces.host_network import queue_commands

MTU_BYTES = 7500
"""The longest IP packet that fits into 8 KiB of kernel memory: longer ones would take 16 KiB of the send buffer."""

_SEND_BUFFER = Path("/proc/sys/net/core/wmem_default")
USUAL_BUFFER_BYTES = 212_992
"""The size of a send buffer where nobody has set another (``net.core.wmem_default``)."""

_SHARE_OF_BUFFER = 0.75
_OVERHEAD_BYTES = 256
_TAIL_BYTES = 384
_ETHERNET_BYTES = 14
_FEWEST_PACKETS = 2
_MOST_PACKETS = 60


def port_queue_commands(interface: str, rate_bps: float, mtu_bytes: int) -> list[str]:
    """Return the commands of ``tc -batch`` that give a port its rate and eight queues, 7 served first.

    Args:
        interface: The port's interface.
        rate_bps: What its cable carries.
        mtu_bytes: The longest IP packet.
    """
    return queue_commands(interface, rate_bps, mtu_bytes, port_queue(mtu_bytes, send_buffer_bytes()))


def port_queue(mtu_bytes: int, buffer_bytes: int) -> str:
    """Return what tc calls a queue of a port, so short that full queues of two ports leave room in the send buffer."""
    frame_bytes = mtu_bytes + _ETHERNET_BYTES
    room = buffer_bytes * _SHARE_OF_BUFFER / 2
    packets = max(_FEWEST_PACKETS, min(_MOST_PACKETS, int(room / _kernel_bytes(frame_bytes))))
    return f"bfifo limit {packets * frame_bytes}"


def send_buffer_bytes() -> int:
    """Return the size of a socket's send buffer on this machine."""
    try:
        return int(_SEND_BUFFER.read_text())
    except OSError:  # a network namespace of an older kernel
        return USUAL_BUFFER_BYTES


def _kernel_bytes(frame_bytes: int) -> int:
    """Return what a waiting frame takes of the buffer: a power of two, and what the kernel needs to describe it."""
    return int(1 << (frame_bytes + _TAIL_BYTES - 1).bit_length()) + _OVERHEAD_BYTES
