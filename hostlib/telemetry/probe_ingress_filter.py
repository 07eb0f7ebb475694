"""Ingress filter that hides arrived probes from the host's own protocols.

A probe has the addresses and ports of a flow. A process that listens on that port would receive the probe as data;
without one, the kernel would answer with ICMP's port unreachable or a TCP reset. A program at the device's ingress
drops probes after packet sockets have seen them and before anything else does (tcx; Linux 6.6 and later).
"""

import ctypes
import os
import platform
import socket
import struct
from ipaddress import IPv4Address
from typing import Final

from hostlib.telemetry.kernel_programs import INSTRUCTION_BYTES, device_program

_BPF_CALL: Final = {"x86_64": 321, "aarch64": 280, "riscv64": 280, "ppc64le": 361, "s390x": 351}
_LOAD_PROGRAM, _CREATE_LINK = 5, 28
_SCHED_CLS = 3
_TCX_INGRESS = 46

_PROGRAM = struct.Struct("=IIQQIIQII16sII")
_LINK = struct.Struct("=IIIIIIQ")


class ProbeIngressFilter:
    """Until closed, only packet sockets see probes to an address that arrive on an interface.

    The kernel removes the filter when the process ends. Raises OSError if the kernel does not support it.
    """

    def __init__(self, interface: str, address: IPv4Address) -> None:
        instructions = ctypes.create_string_buffer(device_program(address))
        # A program that calls no kernel helpers may have any licence.
        licence = ctypes.create_string_buffer(b"Apache-2.0")
        program = _bpf(
            _LOAD_PROGRAM,
            _PROGRAM.pack(
                *(_SCHED_CLS, (len(instructions) - 1) // INSTRUCTION_BYTES),
                *(ctypes.addressof(instructions), ctypes.addressof(licence)),
                *(0, 0, 0, 0, 0, b"trainyard", 0, _TCX_INGRESS),
            ),
        )
        try:
            index = socket.if_nametoindex(interface)
            self._link = _bpf(_CREATE_LINK, _LINK.pack(program, index, _TCX_INGRESS, 0, 0, 0, 0))
        finally:
            os.close(program)

    def close(self) -> None:
        """Remove the filter."""
        os.close(self._link)


def _bpf(command: int, attributes: bytes) -> int:
    """Make the system call bpf(2); return the file descriptor."""
    number = _BPF_CALL.get(platform.machine())
    if number is None:
        raise OSError(f"the number of bpf(2) is unknown on {platform.machine()}")
    held = ctypes.create_string_buffer(attributes)
    arguments = ctypes.c_long(number), ctypes.c_long(command), held, ctypes.c_ulong(len(attributes))
    descriptor: int = ctypes.CDLL(None, use_errno=True).syscall(*arguments)
    if descriptor < 0:
        error = ctypes.get_errno()
        raise OSError(error, os.strerror(error))
    os.set_inheritable(descriptor, False)
    return descriptor
