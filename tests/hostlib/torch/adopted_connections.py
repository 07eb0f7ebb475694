"""Program of one of two ranks: marks and measures the connection of gloo, which C++ owns."""

import os
import socket
from pathlib import Path
from typing import Any

import torch
import torch.distributed as dist

from hostlib.torch.sockets import AdoptedSocket, ConnectionGoneError, connections

SIZE_BYTES = 4_000_000


def main(rank: int) -> dict[str, Any]:
    """Return what the test looks at."""
    dist.all_reduce(torch.zeros(1))
    (endpoints,) = connections()
    adopted = AdoptedSocket.open(endpoints)
    assert adopted is not None
    adopted.set_level(3 + rank)
    dist.barrier()
    before = adopted.sent_bytes(), adopted.received_bytes()
    dist.broadcast(torch.zeros(SIZE_BYTES // 4), src=0)
    dist.barrier()
    after = adopted.sent_bytes(), adopted.received_bytes()
    octets = _octets()
    dist.barrier()
    dist.destroy_process_group()
    return {
        "address": str(endpoints.address),
        "octets": octets,
        "sent_bytes": after[0] - before[0],
        "received_bytes": after[1] - before[1],
        "left": len(connections()),
        "gone": _is_gone(adopted),
    }


def _octets() -> list[int]:
    """The octets with the DSCP of all connected sockets, asked of the owner's descriptors."""
    octets = []
    for descriptor in Path("/proc/self/fd").iterdir():
        try:
            found = socket.socket(fileno=os.dup(int(descriptor.name)))
        except OSError:
            continue
        with found:
            try:
                found.getpeername()
                octets.append(found.getsockopt(socket.IPPROTO_IP, socket.IP_TOS))
            except OSError:
                continue
    return octets


def _is_gone(adopted: AdoptedSocket) -> bool:
    try:
        adopted.sent_bytes()
    except ConnectionGoneError:
        return True
    return False
