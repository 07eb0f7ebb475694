"""Connections that speak no gRPC, or stop in the middle of it."""

import socket
import struct
from random import Random

_PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
_MOST_HELD = 24
_PATIENCE_S = 2.0


def _frame(kind: int, flags: int, stream: int, payload: bytes, length: int | None = None) -> bytes:
    size = len(payload) if length is None else length
    return size.to_bytes(3, "big") + struct.pack("!BBI", kind, flags, stream) + payload


_SETTINGS = _frame(4, 0, 0, b"")
_HALF_REQUEST = _PREFACE + _SETTINGS + _frame(1, 0, 1, b"\x82\x86", length=4000)


class RawConnections:
    """Connections that are held open for some time, half of a request sent."""

    def __init__(self) -> None:
        self._held: list[socket.socket] = []

    def disturb(self, address: tuple[str, int], draws: Random) -> None:
        """Open a connection, or send a little more over one, or close one."""
        if self._held and (len(self._held) >= _MOST_HELD or draws.random() < 0.3):
            self._held.pop(draws.randrange(len(self._held))).close()
        elif self._held and draws.random() < 0.5:
            self._send(draws.choice(self._held), draws)
        else:
            try:
                self._held.append(socket.create_connection(address, _PATIENCE_S))
            except OSError:
                return  # as many as it takes
            self._send(self._held[-1], draws)

    def close(self) -> None:
        """Close all of them."""
        for connection in self._held:
            connection.close()
        self._held.clear()

    def _send(self, connection: socket.socket, draws: Random) -> None:
        octets = draws.choice(
            (
                b"GET / HTTP/1.1\r\n\r\n",
                _PREFACE[: draws.randrange(len(_PREFACE))],
                _PREFACE + _SETTINGS,
                _HALF_REQUEST,
                _PREFACE + _SETTINGS * 100,
                _PREFACE + _frame(draws.randrange(12), draws.randrange(256), draws.randrange(4), draws.randbytes(40)),
                draws.randbytes(draws.choice((1, 100, 5000))),
                b"\x16\x03\x01\x02\x00\x01",
                b"",
            )
        )
        try:
            connection.sendall(octets)
        except OSError:
            connection.close()
            self._held.remove(connection)
