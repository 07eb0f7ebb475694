"""Real packets through a bridge of an Open vSwitch without interfaces: dummy ports hand them over by sockets."""

import selectors
import socket
import struct
import time
from collections.abc import Iterable, Sequence
from contextlib import ExitStack
from types import TracebackType
from typing import Self

from tests.patience import PATIENCE_S
from topologies.openvswitch.daemons import OpenVSwitch

_LENGTH = struct.Struct("!H")
_CHUNK_BYTES = 1 << 16
_MOST_UNDER_WAY = 64
"""A dummy port drops what its reader has not taken once 100 frames wait."""


_LOOK_S = 0.001
_NUDGE = _LENGTH.pack(60) + bytes(12) + b"\x86\xdd" + bytes(46)
"""A frame that no entry admits. A switch sends what waits at its dummy ports when something else wakes it."""


class PortSockets:
    """The far ends of a bridge's dummy ports, each a stream of frames behind their lengths."""

    def __init__(self, openvswitch: OpenVSwitch, bridge: str, ports: Iterable[int]) -> None:
        self._stack = ExitStack()
        self._sockets: dict[int, socket.socket] = {}
        for port in ports:
            path = openvswitch.folder / f"{bridge}-{port}"
            openvswitch.vsctl("set", "interface", f"{bridge}-{port}", f"options:pstream=punix:{path}")
            self._sockets[port] = self._stack.enter_context(_connected(str(path)))

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._stack.close()

    def passed(
        self, port: int, frames: Sequence[bytes], patience_s: float = PATIENCE_S, *, may_lose: bool = False
    ) -> dict[int, list[bytes]]:
        """Send frames into a port; return what has left by each port.

        Raises:
            TimeoutError: Some do not come out in time, unless it ``may_lose`` them.
        """
        deadline_s = time.monotonic() + patience_s
        arrived: dict[int, bytearray] = {number: bytearray() for number in self._sockets}
        with selectors.DefaultSelector() as selector:
            for number, each in self._sockets.items():
                selector.register(each, selectors.EVENT_READ, number)
            for first in range(0, len(frames), _MOST_UNDER_WAY):
                some = b"".join(_LENGTH.pack(len(frame)) + frame for frame in frames[first : first + _MOST_UNDER_WAY])
                self._sockets[port].sendall(some)
                num_missing = len(some)
                while num_missing:
                    if time.monotonic() > deadline_s and may_lose:
                        break
                    if time.monotonic() > deadline_s:
                        raise TimeoutError(f"{num_missing} bytes do not come out")
                    ready = selector.select(_LOOK_S)
                    if not ready:
                        self._sockets[port].sendall(_NUDGE)
                    for key, _ in ready:
                        octets = self._sockets[key.data].recv(_CHUNK_BYTES)
                        arrived[key.data] += octets
                        num_missing -= len(octets)
        return {number: _frames(octets) for number, octets in arrived.items()}


def _connected(path: str) -> socket.socket:
    """Connect as soon as the port listens."""
    deadline_s = time.monotonic() + PATIENCE_S
    while True:
        opened = socket.socket(socket.AF_UNIX)
        try:
            opened.connect(path)
        except (FileNotFoundError, ConnectionRefusedError):
            opened.close()
            if time.monotonic() > deadline_s:
                raise
            time.sleep(0.01)
        else:
            return opened


def _frames(octets: bytearray) -> list[bytes]:
    found, at = [], 0
    while at < len(octets):
        (length,) = _LENGTH.unpack_from(octets, at)
        at += _LENGTH.size
        found.append(bytes(octets[at : at + length]))
        at += length
    return found
