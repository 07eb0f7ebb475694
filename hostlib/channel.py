"""Channel to a controller at one address, for asyncio.

It uses gRPC's threads instead of ``grpc.aio``. The latter has one event queue for all event loops of a process: when
one loop closes, events of another can be lost, and a training job may run loops of its own.
"""

import asyncio
import contextlib
import logging
import threading
import time
from collections.abc import AsyncIterator, Callable, Iterator
from typing import Any, TypeVar

import grpc

from hostlib.credentials import Credentials
from hostlib.errors import ControllerError, RefusalReason, RefusedError, UnreachableError
from hostlib.wire.methods import Method, RequestT, ResponseT

_LOG = logging.getLogger(__name__)

_CHECK_S = 1.0
"""How often to look for renewed credentials, at most."""

_REASONS = {
    grpc.StatusCode.INVALID_ARGUMENT: RefusalReason.INVALID,
    grpc.StatusCode.NOT_FOUND: RefusalReason.UNKNOWN_JOB,
    grpc.StatusCode.ALREADY_EXISTS: RefusalReason.CONFLICT,
    grpc.StatusCode.UNAUTHENTICATED: RefusalReason.UNAUTHENTICATED,
    grpc.StatusCode.PERMISSION_DENIED: RefusalReason.NOT_OWNER,
    grpc.StatusCode.RESOURCE_EXHAUSTED: RefusalReason.EXHAUSTED,
    grpc.StatusCode.UNIMPLEMENTED: RefusalReason.UNSUPPORTED,
}
_NO_ANSWER = (grpc.StatusCode.UNAVAILABLE, grpc.StatusCode.DEADLINE_EXCEEDED, grpc.StatusCode.CANCELLED)
_CHANNEL_OPTIONS = (
    # Find a restarted controller within a second; gRPC's own back-off grows to two minutes.
    ("grpc.initial_reconnect_backoff_ms", 100),
    ("grpc.min_reconnect_backoff_ms", 1000),
    ("grpc.max_reconnect_backoff_ms", 1000),
    # Otherwise all clients of a process share one connection, and its limits at the controller.
    ("grpc.use_local_subchannel_pool", 1),
)

Argument = TypeVar("Argument")


class Channel:
    """Calls to the controller at ``address`` (HOST:PORT or unix:/PATH). Close it after use.

    Calls raise RefusedError if the controller refuses. They raise UnreachableError if it does not answer in time, or if
    it answers that it is not the active controller. ``credentials`` are those of the environment by default. Where
    their files change, the next call makes a new connection, which ends the calls of the old one. The constructor
    raises ValueError for credentials that cannot be used.
    """

    def __init__(self, address: str, credentials: Credentials | None = None) -> None:
        self.address = address
        self._credentials = credentials = credentials or Credentials.from_environment()
        self._contents, self._metadata = credentials.contents(), credentials.metadata()
        self._channel = credentials.channel(address, _CHANNEL_OPTIONS)
        self._checked_s = time.monotonic()
        self._problem: str | None = None
        self._streams: set[grpc.Call] = set()

    def close(self) -> None:
        """Close the connection and end all calls."""
        self._channel.close()

    def end_streams(self) -> None:
        """Cancel all streaming calls."""
        for stream in tuple(self._streams):
            stream.cancel()

    async def call(self, method: Method[RequestT, ResponseT], request: RequestT, deadline_s: float | None) -> ResponseT:
        """Send a request and return the response."""
        self._renew()
        loop = asyncio.get_running_loop()
        answered = loop.create_future()
        with _closed_is_unreachable():
            call = self._channel.unary_unary(
                method.path,
                request_serializer=method.request.SerializeToString,
                response_deserializer=method.response.FromString,
            ).future(request, timeout=deadline_s, metadata=self._metadata)
        call.add_done_callback(lambda _: _tell(loop, _answer, answered))
        try:
            await answered
            return call.result()
        except grpc.RpcError as error:
            raise error_of(error, method) from None
        finally:
            call.cancel()

    async def stream(
        self, method: Method[RequestT, ResponseT], request: RequestT, deadline_s: float | None
    ) -> AsyncIterator[ResponseT]:
        """Send a request and yield the responses."""
        self._renew()
        loop = asyncio.get_running_loop()
        received: asyncio.Queue[ResponseT | Exception | None] = asyncio.Queue()
        has_room = threading.Semaphore()
        with _closed_is_unreachable():
            call = self._channel.unary_stream(
                method.path,
                request_serializer=method.request.SerializeToString,
                response_deserializer=method.response.FromString,
            )(request, timeout=deadline_s, metadata=self._metadata)

        def read() -> None:
            """Read one message at a time, so that flow control holds back the controller."""
            end: Exception | None = None
            try:
                for response in call:
                    has_room.acquire()
                    _tell(loop, received.put_nowait, response)
            except Exception as error:  # raised where the responses are awaited
                end = error
            _tell(loop, received.put_nowait, end)

        threading.Thread(target=read, name="trainyard stream", daemon=True).start()
        self._streams.add(call)
        try:
            while (response := await received.get()) is not None:
                if isinstance(response, grpc.RpcError):
                    raise error_of(response, method)
                if isinstance(response, Exception):
                    raise response
                has_room.release()
                yield response
        finally:
            self._streams.discard(call)
            call.cancel()
            has_room.release()

    def _renew(self) -> None:
        """Take over credentials whose files have changed; keep those from before where the new ones cannot be used."""
        now_s = time.monotonic()
        if not self._credentials.has_files or now_s < self._checked_s + _CHECK_S:
            return
        self._checked_s = now_s
        try:
            contents, self._metadata = self._credentials.contents(), self._credentials.metadata()
            if contents != self._contents:
                former, self._channel = self._channel, self._credentials.channel(self.address, _CHANNEL_OPTIONS)
                self._contents = contents
                former.close()
            problem = None
        except ValueError as error:
            problem = str(error)
        if problem is not None and problem != self._problem:
            _LOG.warning("%s: still using the credentials from before: %s", self.address, problem)
        self._problem = problem


@contextlib.contextmanager
def _closed_is_unreachable() -> Iterator[None]:
    """Raise UnreachableError where gRPC refuses a call, as on a closed channel."""
    try:
        yield
    except ValueError as error:
        raise UnreachableError(str(error)) from None


def error_of(error: grpc.RpcError, method: Method[Any, Any]) -> ControllerError:
    """Translate an error with which gRPC ended a call."""
    message = error.details() or error.code().name
    if error.code() is grpc.StatusCode.UNIMPLEMENTED:
        message = f"{method.name}: the controller does not know this call ({message})"
    return (
        UnreachableError(message)
        if error.code() in _NO_ANSWER
        else RefusedError(_REASONS.get(error.code(), RefusalReason.FAILED), message)
    )


def _tell(loop: asyncio.AbstractEventLoop, call: Callable[[Argument], object], argument: Argument) -> None:
    """Call something soon in a loop, from another thread; a closed loop is ignored."""
    with contextlib.suppress(RuntimeError):
        loop.call_soon_threadsafe(call, argument)


def _answer(answered: "asyncio.Future[None]") -> None:
    if not answered.done():
        answered.set_result(None)
