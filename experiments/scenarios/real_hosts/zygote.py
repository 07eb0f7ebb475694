"""Imports PyTorch once and forks ranks, each into its host, which costs far less than an import for each.

    python -m experiments.scenarios.real_hosts.zygote OWNER

Its standard input is a Unix socket of packets. The run sends JSON objects:

- ``fork``: a number for the rank, its ``place``, ``environment`` and ``plan``, with the descriptor that is to be its
  standard input and output;
- ``kill``: the number of a rank, and a ``signal``.

It answers ``ended``, the number of a rank, and its ``status``. ``ps`` shows a rank as ``rank 3 llama``. The zygote ends
with the process OWNER or at the end of the socket, and so do the ranks, even by SIGKILL.
"""

import ctypes
import json
import os
import select
import signal
import socket
import sys
from functools import partial
from typing import Any, NoReturn

from experiments.scenarios.real_hosts import torch_rank
from topologies.namespaces import enter

LONGEST_PACKET_BYTES = 1 << 16
_DIES_WITH_PARENT, _SET_NAME = 1, 15
_LIBC = ctypes.CDLL(None, use_errno=True)


def main(owner: int) -> None:
    """Fork ranks until the owner ends."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    owner_ends = os.pidfd_open(owner)
    pids: dict[int, int] = {}
    numbers: dict[int, int] = {}
    with socket.socket(fileno=os.dup(0)) as control:
        watched = select.poll()
        for descriptor in (control.fileno(), owner_ends):
            watched.register(descriptor, select.POLLIN)
        while True:
            for descriptor, _ in watched.poll():
                if descriptor == owner_ends:
                    return
                if descriptor == control.fileno():
                    packet, descriptors, _, _ = socket.recv_fds(control, LONGEST_PACKET_BYTES, 1)
                    if not packet:
                        return
                    request = json.loads(packet)
                    if "fork" in request:
                        pid = _fork(request, *descriptors)
                        pids[request["fork"]] = pid
                        ends = os.pidfd_open(pid)
                        numbers[ends] = request["fork"]
                        watched.register(ends, select.POLLIN)
                    elif request["kill"] in pids:  # else it has ended meanwhile
                        os.kill(pids[request["kill"]], request["signal"])
                else:
                    number = numbers.pop(descriptor)
                    _, status = os.waitpid(pids.pop(number), 0)
                    watched.unregister(descriptor)
                    os.close(descriptor)
                    control.send(json.dumps({"ended": number, "status": os.waitstatus_to_exitcode(status)}).encode())


def _fork(request: dict[str, Any], standard: int) -> int:
    """Fork a rank that has this as its standard input and output; return its number."""
    zygote = os.getpid()
    pid = os.fork()
    if pid:
        os.close(standard)
        return pid
    _LIBC.prctl(_DIES_WITH_PARENT, signal.SIGKILL)
    if os.getppid() != zygote:
        os._exit(1)  # it has ended before the kernel knew
    for descriptor in (0, 1, 2):
        os.dup2(standard, descriptor)
    os.closerange(3, os.sysconf("SC_OPEN_MAX"))
    os.environ.update(request["environment"])
    os._exit(enter.run_in(enter.Place(**request["place"]), partial(_be_rank, request["plan"])))


def _be_rank(plan: str) -> NoReturn:
    name = f"rank {os.environ['RANK']} {os.environ['TRAINYARD_JOB']}"
    _LIBC.prctl(_SET_NAME, name.encode())
    torch_rank.main(plan)


if __name__ == "__main__":
    main(int(sys.argv[1]))
