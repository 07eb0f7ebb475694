"""The bytes of frames that hosts have sent and received, as the kernel counts them at the switches' ends of cables."""

from collections.abc import Mapping
from pathlib import Path

from topologies.namespaces.host_network import NetworkError

_RECEIVED, _SENT = 0, 8
"""Columns of bytes in the kernel's table."""


def frame_bytes(table: Path, wires: Mapping[tuple[str, int], str]) -> dict[tuple[str, int], tuple[int, int]]:
    """Return the bytes that each NIC has sent and received so far: what the other end of its cable received and sent.

    Args:
        table: The kernel's table of interfaces, ``/proc/PID/net/dev``, of a process in their network namespace.
        wires: The interface at the switch's end of each NIC's cable, by host and number of the NIC.

    Raises:
        NetworkError: The process has ended, or an interface is gone.
    """
    try:
        lines = table.read_text().splitlines()
    except OSError as error:
        raise NetworkError(f"the keeper of the interfaces has ended: {table}: {error.strerror}") from error
    counts = {name.strip(): row.split() for name, _, row in (line.partition(":") for line in lines)}
    for (host, nic), name in wires.items():
        if name not in counts:
            raise NetworkError(f"interface {name} of {host}.{nic} is gone")
    return {nic: (int(counts[name][_RECEIVED]), int(counts[name][_SENT])) for nic, name in wires.items()}
