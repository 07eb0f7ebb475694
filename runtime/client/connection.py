"""The client's connection: requests from any thread, answers by a thread of its own."""

import select
import socket
import time
from collections.abc import Callable
from contextlib import suppress
from itertools import count
from threading import Lock, Thread

from runtime import messages
from runtime.addresses import dialled
from runtime.errors import DisconnectedError, RefusedError, RuntimeFailure
from runtime.frames import MOST_BYTES, Frame, FrameReader, Kind, prefix

_OFTEN_S = 0.2
_GREETING_S = 10.0
_TOGETHER_BYTES = 1 << 16

Taken = Callable[[object, Frame | None], bool]
"""Takes an answer with its frame, or the error that ended the connection; says whether it was the last answer."""


class ServerConnection:
    """Sends messages to the server, and hands answers to those who asked.

    ``on_time`` is called several times a second. Raises RefusedError for a token that the server does not know, and
    OSError where nobody listens.
    """

    def __init__(self, address: str, token: str, on_time: Callable[[], None]) -> None:
        self._socket = dialled(address)
        self._lock = Lock()
        self._reader = FrameReader(MOST_BYTES)
        self._unsent: list[bytes | memoryview] = []
        self._requests = count()
        self._waiting: dict[int, Taken] = {}
        self._on_time = on_time
        self._error: RuntimeFailure | None = None
        try:
            self.client = self._greet(token)
        except BaseException:
            self._socket.close()
            raise
        self._thread = Thread(target=self._read, name="runtime-client", daemon=True)
        self._thread.start()

    @property
    def error(self) -> RuntimeFailure | None:
        """Why the connection has ended, if it has."""
        return self._error

    def send(self, message: object, *payload: bytes | memoryview) -> None:
        """Send a message, after what was posted. Raises why the connection has ended, if it has."""
        self.post(message, *payload)
        self.flush()

    def post(self, message: object, *payload: bytes | memoryview) -> None:
        """Send a message with the next ``flush``; the payload must not change before. Raises as ``send``."""
        header = messages.encode(message)
        head = prefix(Kind.MESSAGE, header, sum(map(len, payload)))
        with self._lock:
            if self._error is not None:
                raise self._error
            self._unsent += (head, *payload)

    def flush(self) -> None:
        """Send what was posted: what is small together, so that the server wakes up once. Raises as ``send``."""
        with self._lock:
            unsent, self._unsent = self._unsent, []
            if sum(map(len, unsent)) <= _TOGETHER_BYTES:
                unsent = [b"".join(unsent)]
            try:
                for part in unsent:
                    self._socket.sendall(part)
            except OSError as error:
                raise self._error or DisconnectedError(f"the server is gone: {error.strerror}") from None

    def ask(self, make: Callable[[int], object], taken: Taken) -> int:
        """Send the message that ``make`` makes of a new request's number; ``taken`` gets the answers, in a thread."""
        request = self.post_request(make, taken)
        try:
            self.flush()
        except RuntimeFailure:
            self._waiting.pop(request, None)
            raise
        return request

    def post_request(self, make: Callable[[int], object], taken: Taken) -> int:
        """Do the same with the next ``flush``. What ends the connection is given to ``taken``."""
        request = next(self._requests)
        self._waiting[request] = taken
        try:
            self.post(make(request))
        except RuntimeFailure:
            self._waiting.pop(request, None)
            raise
        return request

    def forget(self, request: int) -> None:
        """Ignore further answers to a request."""
        self._waiting.pop(request, None)

    def close(self) -> None:
        """End the connection; the server forgets what belongs to it."""
        self._end(DisconnectedError("the client is closed"))
        self._thread.join()
        self._socket.close()

    def _greet(self, token: str) -> int:
        hello = messages.encode(messages.Hello(messages.VERSION, "client", "", token))
        self._socket.settimeout(_GREETING_S)
        self._socket.sendall(prefix(Kind.MESSAGE, hello, 0))
        while True:
            size = self._socket.recv_into(self._reader.memory())
            if size == 0:
                raise DisconnectedError("the server closed the connection")
            for frame in self._reader.received(size):
                match messages.decode(frame.header):
                    case messages.Welcome(client):
                        self._socket.settimeout(None)
                        return client
                    case messages.Refused(_, message):
                        raise RefusedError(message)
                raise DisconnectedError("the server does not greet")

    def _read(self) -> None:
        next_s = time.monotonic() + _OFTEN_S
        try:
            while True:
                ready = select.select((self._socket,), (), (), _OFTEN_S)[0]
                if time.monotonic() >= next_s:
                    self._on_time()
                    next_s = time.monotonic() + _OFTEN_S
                if not ready:
                    continue
                size = self._socket.recv_into(self._reader.memory())
                if size == 0:
                    raise DisconnectedError("the server is gone")
                for frame in self._reader.received(size):
                    self._take(frame)
        except (OSError, ValueError) as error:  # ValueError: what is no message, or a socket that is closed
            self._end(DisconnectedError(f"the server is gone: {error}"))
        except RuntimeFailure as error:
            self._end(error)

    def _take(self, frame: Frame) -> None:
        message = messages.decode(frame.header)
        request = getattr(message, "request", None)
        if isinstance(message, messages.Refused) and request is None:
            raise RefusedError(message.message)
        taken = self._waiting.get(request) if request is not None else None
        if taken is not None and taken(message, frame):
            self._waiting.pop(request, None)  # type: ignore[arg-type]

    def _end(self, error: RuntimeFailure) -> None:
        """Fail everything that waits, and everything from now on."""
        if self._error is None:
            self._error = error
        with suppress(OSError):
            self._socket.shutdown(socket.SHUT_RDWR)
        for request in tuple(self._waiting):
            taken = self._waiting.pop(request, None)
            if taken is not None:
                taken(self._error, None)
