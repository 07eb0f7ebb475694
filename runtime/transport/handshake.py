"""Handshake of two processes: each proves that it knows a token, and no token travels. Blocking sockets.

The acceptor sends a nonce; the connector answers with its own, who it is, and the HMAC-SHA-256 of both under the
token; the acceptor answers with its name and such an HMAC. Before that nothing is read but fields of a known size.
"""

import hmac
import secrets
import socket
import time
from collections.abc import Callable
from dataclasses import dataclass
from enum import IntEnum
from struct import Struct

from runtime.transport.errors import HandshakeError

HANDSHAKE_S = 5.0
"""Whoever takes longer is refused."""
_MAGIC = b"trainyd1"
_NONCE_BYTES = 32
_PROOF_BYTES = 32
_INTRODUCTION = Struct("<B16sB")
_MOST_NAME_BYTES = 255
Tokens = Callable[[str], bytes | None]
"""The token of whoever has a name; None for a stranger."""


class Purpose(IntEnum):
    """What a connection is for."""

    MESSAGES = 1
    BULK = 2


@dataclass(frozen=True)
class Introduction:
    """Who connects, what for, and the link that its connections share."""

    name: str
    purpose: Purpose
    link: bytes


def introduce(connection: socket.socket, introduction: Introduction, token: bytes) -> str:
    """Introduce the connector; return the acceptor's name.

    Raises HandshakeError if either end does not know the token.
    """
    received = _Received(connection)
    try:
        _check_magic(received(len(_MAGIC)))
        theirs, ours = received(_NONCE_BYTES), secrets.token_bytes(_NONCE_BYTES)
        fields = _fields(introduction)
        proof = _proof(token, b"connector", theirs, ours, fields)
        connection.sendall(_MAGIC + ours + fields + proof)
        name = received(received(1)[0])
        if not hmac.compare_digest(received(_PROOF_BYTES), _proof(token, b"acceptor", ours, theirs, name)):
            raise HandshakeError(f"{name!r}, which was called, does not know the token")
        connection.settimeout(None)
        return name.decode()
    except (OSError, ValueError) as error:
        raise HandshakeError(f"the handshake of {introduction.name} failed: {error}") from None


def examine(connection: socket.socket, name: str, tokens: Tokens) -> tuple[Introduction, bytes]:
    """Return who connects, and what lets the connector in once it is sent.

    Raises HandshakeError for strangers and for other protocols.
    """
    received = _Received(connection)
    try:
        ours = secrets.token_bytes(_NONCE_BYTES)
        connection.sendall(_MAGIC + ours)
        _check_magic(received(len(_MAGIC)))
        theirs = received(_NONCE_BYTES)
        fixed = received(_INTRODUCTION.size)
        purpose, link, name_bytes = _INTRODUCTION.unpack(fixed)
        fields = fixed + received(name_bytes)
        proof = received(_PROOF_BYTES)
        introduction = Introduction(fields[len(fixed) :].decode(), Purpose(purpose), link)
        token = tokens(introduction.name)
        if token is None or not hmac.compare_digest(proof, _proof(token, b"connector", ours, theirs, fields)):
            raise HandshakeError(f"{introduction.name!r:.100} does not know its token")
        own_name = name.encode()
        return introduction, bytes((len(own_name),)) + own_name + _proof(token, b"acceptor", theirs, ours, own_name)
    except (OSError, ValueError) as error:
        raise HandshakeError(f"the handshake of a connector failed: {error}") from None


def check_name(name: str) -> str:
    """Return a name that fits a handshake. Raises ValueError for one that is empty or longer than 255 bytes."""
    if not 0 < len(name.encode()) <= _MOST_NAME_BYTES:
        raise ValueError(f"name: expected 1 to {_MOST_NAME_BYTES} bytes, got {name!r:.100}")
    return name


def _fields(introduction: Introduction) -> bytes:
    name = introduction.name.encode()
    return _INTRODUCTION.pack(introduction.purpose, introduction.link, len(name)) + name


def _proof(token: bytes, role: bytes, first: bytes, second: bytes, fields: bytes) -> bytes:
    return hmac.digest(token, role + first + second + fields, "sha256")


def _check_magic(received: bytes) -> None:
    if received != _MAGIC:
        raise HandshakeError(f"expected {_MAGIC!r} from a process of a runtime, got {received!r}")


class _Received:
    """Receives fields of known sizes from a connection, all of them within ``HANDSHAKE_S``."""

    def __init__(self, connection: socket.socket) -> None:
        self._connection = connection
        self._end_s = time.monotonic() + HANDSHAKE_S

    def __call__(self, size_bytes: int) -> bytes:
        received = b""
        while len(received) < size_bytes:
            self._connection.settimeout(max(0.001, self._end_s - time.monotonic()))
            part = self._connection.recv(size_bytes - len(received))
            if not part:
                raise HandshakeError("the other end closed the connection during the handshake")
            received += part
        return received
