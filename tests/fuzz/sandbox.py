"""Shuts a process in: a network namespace with loopback alone, and limits that its children inherit."""

import ctypes
import fcntl
import os
import resource
import socket
import struct

_NEW_NETWORK = 0x40000000
_GET_FLAGS, _SET_FLAGS = 0x8913, 0x8914
_UP = 0x1

MOST_MEMORY_BYTES = 12 << 30
"""Of addresses, of which machine code and the stacks of threads take most."""
MOST_FILES = 1024
LARGEST_FILE_BYTES = 1 << 30
MOST_PROCESSES = 4096
"""Of the user, where the user is not root; the fuzzer counts its own too."""


class SandboxError(Exception):
    """The process cannot be shut in; the message says why."""


def shut_in() -> None:
    """Leave the network for a namespace of this process, and set limits. Raises SandboxError."""
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.unshare(_NEW_NETWORK):
        reason = os.strerror(ctypes.get_errno())
        raise SandboxError(f"no network namespace here, which takes root and Linux: {reason}")
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as anything:
        (flags,) = struct.unpack_from("h", fcntl.ioctl(anything, _GET_FLAGS, struct.pack("16sh14x", b"lo", 0)), 16)
        fcntl.ioctl(anything, _SET_FLAGS, struct.pack("16sh14x", b"lo", flags | _UP))
    for limit, most in (
        (resource.RLIMIT_AS, MOST_MEMORY_BYTES),
        (resource.RLIMIT_NOFILE, MOST_FILES),
        (resource.RLIMIT_FSIZE, LARGEST_FILE_BYTES),
        (resource.RLIMIT_NPROC, MOST_PROCESSES),
        (resource.RLIMIT_CORE, 0),
    ):
        hard = resource.getrlimit(limit)[1]
        bound = most if hard == resource.RLIM_INFINITY else min(most, hard)
        resource.setrlimit(limit, (bound, bound))


def interfaces() -> list[str]:
    """Return the network interfaces that this process sees."""
    return [name for _, name in socket.if_nameindex()]
