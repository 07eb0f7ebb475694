"""Network interfaces of one network namespace: their indexes, states and changes, and a packet socket for them.

All of it needs Linux. Sockets belong to the namespace in which they were opened, whoever uses them.
"""

import ctypes
import errno
import fcntl
import os
import socket
import struct
import threading
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import TypeVar

_Result = TypeVar("_Result")

_NEW_NETWORK = 0x40000000  # CLONE_NEWNET
_GET_FLAGS, _SET_FLAGS, _GET_MTU, _GET_INDEX = 0x8913, 0x8914, 0x8921, 0x8933
_IS_UP, _IS_RUNNING = 0x1, 0x40
_LINK_CHANGES = 1  # RTMGRP_LINK
_ETH_P_ALL = 3
_SOL_PACKET, _STATISTICS, _AUXILIARY_DATA, _IGNORE_OUTGOING, _QDISC_BYPASS = 263, 6, 8, 23, 20
_ATTACH_FILTER, _SEND_BUFFER_FORCE, _RECEIVE_BUFFER_FORCE = 26, 32, 33
_BUFFER_BYTES = 8 << 20
_NAME_BYTES = 16


class InterfaceError(OSError):
    """An interface is not there, or what it is needed for is not permitted; the text names it."""


def inside(namespace: Path | None, work: Callable[[], _Result]) -> _Result:
    """Return what a function returns inside a network namespace, or in that of the process.

    Raises:
        InterfaceError: There is no such namespace, or it may not be entered.
    """
    if namespace is None:
        return work()
    found: list[_Result] = []
    failed: list[BaseException] = []

    def enter() -> None:
        try:
            _enter(namespace)
            found.append(work())
        except BaseException as error:
            failed.append(error)

    # A thread has a namespace of its own, which ends with it.
    thread = threading.Thread(target=enter)
    thread.start()
    thread.join()
    if failed:
        raise failed[0]
    return found[0]


def _enter(namespace: Path) -> None:
    try:
        file = os.open(namespace, os.O_RDONLY)
    except OSError as error:
        raise InterfaceError(f"network namespace {namespace}: {error.strerror}") from error
    try:
        library = ctypes.CDLL(None, use_errno=True)
        if library.setns(file, _NEW_NETWORK):
            raise InterfaceError(f"network namespace {namespace}: {os.strerror(ctypes.get_errno())}")
    finally:
        os.close(file)


class Interfaces:
    """The interfaces of a network namespace.

    Args:
        namespace: A file of the namespace, such as ``/var/run/netns/NAME``; None: that of the process.

    Raises:
        InterfaceError: The namespace cannot be entered.
    """

    def __init__(self, namespace: Path | None = None) -> None:
        self._namespace = namespace
        self._control, self.changes = inside(namespace, _control_sockets)

    def close(self) -> None:
        """Close the sockets."""
        self._control.close()
        self.changes.close()

    def index(self, name: str) -> int | None:
        """Return the index of an interface; None where there is none of this name."""
        answer = self._ask(_GET_INDEX, name)
        return None if answer is None else int(struct.unpack_from("i", answer, _NAME_BYTES)[0])

    def mtu_bytes(self, name: str) -> int:
        """Return the longest IP packet that an interface takes. Raises InterfaceError where there is none."""
        answer = self._ask(_GET_MTU, name)
        if answer is None:
            raise InterfaceError(f"there is no interface {name!r}")
        return int(struct.unpack_from("i", answer, _NAME_BYTES)[0])

    def is_up(self, name: str) -> bool:
        """Return whether an interface is there, is up, and has a carrier."""
        flags = self._flags(name)
        return flags is not None and flags & _IS_UP != 0 and flags & _IS_RUNNING != 0

    def set_up(self, name: str, *, up: bool) -> None:
        """Take an interface up or down; nothing happens where it is so, or is not there.

        Raises:
            InterfaceError: That is not permitted.
        """
        flags = self._flags(name)
        if flags is None or (flags & _IS_UP != 0) == up:
            return
        wanted = flags | _IS_UP if up else flags & ~_IS_UP
        request = struct.pack("16sH22x", name.encode(), wanted)
        try:
            fcntl.ioctl(self._control, _SET_FLAGS, request)
        except OSError as error:
            if error.errno != errno.ENODEV:
                raise InterfaceError(f"interface {name!r} cannot be set {'up' if up else 'down'}: {error}") from error

    def packet_socket(self) -> socket.socket:
        """Open a packet socket that sees the frames of no interface yet (``watch``).

        Raises:
            InterfaceError: That is not permitted.
        """
        try:
            opened = inside(self._namespace, _packet_socket)
        except PermissionError as error:
            raise InterfaceError("real interfaces need the capability CAP_NET_RAW: run as root") from error
        return opened

    def _flags(self, name: str) -> int | None:
        answer = self._ask(_GET_FLAGS, name)
        return None if answer is None else int(struct.unpack_from("H", answer, _NAME_BYTES)[0])

    def _ask(self, what: int, name: str) -> bytes | None:
        if len(name.encode()) >= _NAME_BYTES:
            return None  # the kernel knows no such names
        try:
            return fcntl.ioctl(self._control, what, struct.pack("16s24x", name.encode()))
        except OSError as error:
            if error.errno in (errno.ENODEV, errno.ENXIO):
                return None
            raise


def watch(packets: socket.socket, indexes: Iterable[int]) -> None:
    """Let a packet socket see the frames of these interfaces, and of no others."""
    # Classic BPF: load the interface's index; accept where it is one of these, and drop else.
    code = [struct.pack("HBBI", 0x20, 0, 0, 0xFFFFF008)]
    for index in indexes:
        code += [struct.pack("HBBI", 0x15, 0, 1, index), struct.pack("HBBI", 0x06, 0, 0, 0xFFFFFFFF)]
    code.append(struct.pack("HBBI", 0x06, 0, 0, 0))
    filled = ctypes.create_string_buffer(b"".join(code))
    program = struct.pack("HxxxxxxP", len(code), ctypes.addressof(filled))
    packets.setsockopt(socket.SOL_SOCKET, _ATTACH_FILTER, program)


def missed_frames(packets: socket.socket) -> int:
    """Return how many frames a packet socket has lost since the last call, because nobody read them."""
    _, missed = struct.unpack("II", packets.getsockopt(_SOL_PACKET, _STATISTICS, 8))
    return int(missed)


def _control_sockets() -> tuple[socket.socket, socket.socket]:
    changes = socket.socket(socket.AF_NETLINK, socket.SOCK_RAW | socket.SOCK_NONBLOCK, socket.NETLINK_ROUTE)
    changes.bind((0, _LINK_CHANGES))
    return socket.socket(socket.AF_INET, socket.SOCK_DGRAM), changes


def _packet_socket() -> socket.socket:
    # It sees nothing until it is bound, and by then it has a filter that lets nothing pass.
    opened = socket.socket(socket.AF_PACKET, socket.SOCK_RAW | socket.SOCK_NONBLOCK, 0)
    watch(opened, ())
    for option, value in ((_IGNORE_OUTGOING, 1), (_QDISC_BYPASS, 1), (_AUXILIARY_DATA, 1)):
        opened.setsockopt(_SOL_PACKET, option, value)
    for forced, option in ((_SEND_BUFFER_FORCE, socket.SO_SNDBUF), (_RECEIVE_BUFFER_FORCE, socket.SO_RCVBUF)):
        try:
            opened.setsockopt(socket.SOL_SOCKET, forced, _BUFFER_BYTES)
        except PermissionError:  # as much as the machine allows everybody
            opened.setsockopt(socket.SOL_SOCKET, option, _BUFFER_BYTES)
    _bind_to_all(opened)
    return opened


def _bind_to_all(opened: socket.socket) -> None:
    # ``socket.bind`` takes the name of an interface; none stands for all.
    library = ctypes.CDLL(None, use_errno=True)
    address = struct.pack("HHiHBB8s", socket.AF_PACKET, socket.htons(_ETH_P_ALL), 0, 0, 0, 0, b"")
    if library.bind(opened.fileno(), address, len(address)):
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
