"""What ports have sent by level, as the kernel's queues count it."""

import re
from collections.abc import Sequence

from topologies.namespaces.host_network import NUM_LEVELS, NetworkError, class_of_level

_CLASS = re.compile(r"^class htb 1:([0-9a-f]+) .*\n Sent (\d+) bytes (\d+) pkt", re.MULTILINE)


def count_commands(interfaces: Sequence[str]) -> str:
    """Return the commands of ``tc -statistics -batch`` that print the counters of these interfaces' queues."""
    return "".join(f"class show dev {interface}\n" for interface in interfaces)


def queue_counts(printed: str, interfaces: Sequence[str]) -> dict[str, list[tuple[int, int]]]:
    """Return the bytes and packets that each interface has sent, by level, from what tc has printed.

    Raises:
        NetworkError: An interface has other queues than ``port_queue_commands`` gives it.
    """
    levels = {class_of_level(level): level for level in range(NUM_LEVELS)}
    found = [(int(number, 16), int(sent), int(packets)) for number, sent, packets in _CLASS.findall(printed)]
    rows = [(levels[number], (sent, packets)) for number, sent, packets in found if number in levels]
    if len(rows) != len(interfaces) * NUM_LEVELS:
        raise NetworkError(f"{len(rows)} queues at {len(interfaces)} ports: expected {NUM_LEVELS} at each")
    counts = {}
    for position, interface in enumerate(interfaces):
        of_port = dict(rows[position * NUM_LEVELS : (position + 1) * NUM_LEVELS])
        if len(of_port) != NUM_LEVELS:
            raise NetworkError(f"interface {interface} has no queue for some level")
        counts[interface] = [of_port[level] for level in range(NUM_LEVELS)]
    return counts
