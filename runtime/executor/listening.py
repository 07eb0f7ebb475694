"""Where a host listens, and the hosts that greet it there."""

import hmac
import socket
import time
from collections.abc import Callable
from functools import partial

from runtime import messages
from runtime.addresses import bound, listening
from runtime.codec import MalformedError
from runtime.executor.connection import Connection
from runtime.executor.loop import Loop
from runtime.frames import MOST_BYTES, Frame, FrameError, Kind

_FULL_S = 0.1
"""After so long there may be room for a connection that found none."""


class Listening:
    """Listens for hosts that know the secret.

    ``on_greeting`` takes the connection of each and what it said; it may refuse that with FrameError.
    """

    def __init__(self, loop: Loop, secret: str, on_greeting: Callable[[Connection, messages.Hello], None]) -> None:
        self._loop = loop
        self._secret = secret.encode()
        self._on_greeting = on_greeting

    def listen(self, address: str) -> str:
        """Listen at an address; return it with the port that it got."""
        listener = listening(address)
        listener.setblocking(False)
        self._watch(listener)
        return bound(listener, address)

    def _watch(self, listener: socket.socket) -> None:
        self._loop.watch(listener, partial(self._accept, listener), None)

    def _accept(self, listener: socket.socket) -> None:
        try:
            sock, _ = listener.accept()
        except BlockingIOError:
            return
        except OSError:  # no descriptor is left, perhaps: who wants to connect waits
            self._loop.forget(listener)
            self._loop.at(time.perf_counter() + _FULL_S, partial(self._watch, listener))
            return
        Connection(self._loop, sock, self._take_greeting, lambda _: None)

    def _take_greeting(self, connection: Connection, frame: Frame) -> None:
        """Take the first frame of a connection, which must be that of a host that knows the secret."""
        try:
            hello = messages.decode(frame.header) if frame.kind == Kind.MESSAGE else None
        except MalformedError:
            hello = None
        if (
            not isinstance(hello, messages.Hello)
            or hello.version != messages.VERSION
            or not hmac.compare_digest(hello.token.encode(), self._secret)
            or not hello.name.isdecimal()
        ):
            raise FrameError("expected the greeting of a host")
        connection.is_trusted = True
        connection.reader.most_bytes = MOST_BYTES
        self._on_greeting(connection, hello)
