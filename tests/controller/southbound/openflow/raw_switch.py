"""A plain blocking connection to a switch, for tests of what messages do there."""

import socket
import struct
from collections.abc import Sequence
from pathlib import Path
from types import TracebackType
from typing import Self

from tests.patience import PATIENCE_S

_HELLO, _ERROR, _ECHO_REQUEST, _ECHO_REPLY, _MULTIPART_REPLY = 0, 1, 2, 3, 19
_BARRIER_REQUEST, _BARRIER_REPLY = 20, 21
_HAS_MORE = 1


class RawSwitch:
    """A switch at a socket of its machine, in one version of OpenFlow; a context manager."""

    def __init__(self, path: Path, version: int) -> None:
        self.version = version
        self._socket = socket.socket(socket.AF_UNIX)
        self._received = b""
        self._socket.settimeout(PATIENCE_S)
        self._socket.connect(str(path))
        self._socket.sendall(struct.pack("!BBHIHHI", version, _HELLO, 16, 0, 1, 8, 1 << version))
        assert self._next()[1] == _HELLO

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._socket.close()

    def write(self, messages: Sequence[bytes]) -> None:
        """Send messages; return when the switch has done all of them, and refused none."""
        barrier = struct.pack("!BBHI", self.version, _BARRIER_REQUEST, 8, 1)
        self._socket.sendall(b"".join([*messages, barrier]))
        refused = []
        while (answer := self._next())[1] != _BARRIER_REPLY:
            refused += [answer.hex()] if answer[1] == _ERROR else []
        assert refused == []

    def request(self, message: bytes) -> list[bytes]:
        """Return all parts of the reply to a multipart request."""
        self._socket.sendall(message)
        parts = []
        while True:
            answer = self._next()
            assert answer[1] != _ERROR, answer.hex()
            if answer[1] == _MULTIPART_REPLY:
                parts.append(answer)
                if not answer[11] & _HAS_MORE:
                    return parts

    def _next(self) -> bytes:
        """Return the next message that is no echo request; those are answered."""
        while True:
            message = self._take(8)
            message += self._take(int.from_bytes(message[2:4], "big") - 8)
            if message[1] != _ECHO_REQUEST:
                return message
            self._socket.sendall(message[:1] + bytes((_ECHO_REPLY,)) + message[2:])

    def _take(self, count: int) -> bytes:
        while len(self._received) < count:
            octets = self._socket.recv(1 << 16)
            assert octets, "the switch has closed the connection"
            self._received += octets
        taken, self._received = self._received[:count], self._received[count:]
        return taken
