"""gRPC calls over the network in memory: both ends of a call, with the interface of ``grpc.aio``."""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from itertools import count
from typing import Any

import grpc
import grpc.aio

from tests.chaos.network import Connection, Lane, Network

_RETRY_S = 0.5
_NUMBERS = count()


@dataclass(frozen=True)
class Status:
    """The status with which a call ended."""

    code: grpc.StatusCode
    details: str = ""
    metadata: tuple[tuple[str, bytes], ...] = ()

    def error(self) -> grpc.aio.AioRpcError:
        """Return the error that the client raises."""
        return grpc.aio.AioRpcError(self.code, grpc.aio.Metadata(), grpc.aio.Metadata(*self.metadata), self.details)


_OK = Status(grpc.StatusCode.OK)
_UNREACHABLE = Status(grpc.StatusCode.UNAVAILABLE, "nobody answers")
_BROKEN = Status(grpc.StatusCode.UNAVAILABLE, "the connection is broken")
_LATE = Status(grpc.StatusCode.DEADLINE_EXCEEDED, "Deadline Exceeded")


class ClientCall:
    """The client's end of a call; ``ended`` is its status once that is known.

    ``connect`` returns the connection or None; with ``wait_for_ready`` the call retries until there is one.
    """

    def __init__(
        self,
        network: Network,
        connect: Callable[[], Connection | None],
        method: str,
        timeout_s: float | None,
        *,
        wait_for_ready: bool = False,
    ) -> None:
        self.ended: Status | None = None
        self.is_cancelled = False
        self._network = network
        self._connect = connect
        self._method = method
        self._wait_for_ready = wait_for_ready
        self._number = next(_NUMBERS)
        self._inbox: asyncio.Queue[bytes | Status] = asyncio.Queue()
        self._unsent: list[bytes | None] = []
        self._lane: Lane | None = None
        self._served: ServedCall | None = None
        self._connection: Connection | None = None
        loop = asyncio.get_running_loop()
        self._deadline = None if timeout_s is None else loop.call_later(timeout_s, self._stop, _LATE)
        self._retry: asyncio.TimerHandle | None = None
        self._begin()

    def write(self, message: bytes | None) -> None:
        """Send a message; None ends the messages."""
        if self._lane is None:
            self._unsent.append(message)
        elif self._served is not None:
            take = self._served.requests.put_nowait
            self._network.send(self._lane, message or b"", (lambda _: take(None)) if message is None else take)

    async def read(self) -> bytes | None:
        """Return the next message, or None at the end.

        Raises AioRpcError where the call fails, CancelledError where it was cancelled.
        """
        try:
            found = _OK if self.is_cancelled else self.ended or await self._inbox.get()
        except asyncio.CancelledError:
            self.cancel()
            raise
        if self.is_cancelled:
            raise asyncio.CancelledError
        if not isinstance(found, Status):
            return found
        if found.code is not grpc.StatusCode.OK:
            raise found.error()
        return None

    def end(self) -> None:
        """End the call for a caller that does not read it; a reader gets an error."""
        if self.ended is None:
            self._stop(Status(grpc.StatusCode.CANCELLED, "Channel closed!"))

    def cancel(self) -> None:
        """Cancel the call; a reader gets an error."""
        if self.ended is None:
            self.is_cancelled = True
            self._stop(Status(grpc.StatusCode.CANCELLED, "Locally cancelled by application!"))

    def _begin(self) -> None:
        loop = asyncio.get_running_loop()
        connection = self._connect()
        if connection is None:
            self._retry = (
                loop.call_later(_RETRY_S, self._begin)
                if self._wait_for_ready
                else loop.call_later(0.001, self._stop, _UNREACHABLE)
            )
            return
        self._connection = connection
        connection.on_break[self._number] = partial(self._stop, _BROKEN)
        self._served = ServedCall(self._network, connection, self._method, self._number, self._receive)
        self._lane = Lane(f"{self._method} >", connection, connection.client)
        self._network.send(self._lane, b"", self._served.begin)
        for message in self._unsent:
            self.write(message)
        self._unsent.clear()

    def _receive(self, found: bytes | Status) -> None:
        if self.ended is not None:
            return
        if isinstance(found, Status):
            self._end(found)
        self._inbox.put_nowait(found)

    def _stop(self, status: Status) -> None:
        """End the call on this side first."""
        if self.ended is None:
            self._end(status)
            self._inbox.put_nowait(status)
            if self._lane is not None and self._served is not None:
                self._network.send(self._lane, b"", self._served.cancel)

    def _end(self, status: Status) -> None:
        self.ended = status
        for timer in (self._deadline, self._retry):
            if timer is not None:
                timer.cancel()
        if self._connection is not None:
            self._connection.on_break.pop(self._number, None)


class ServedCall:
    """The server's end of a call, which also serves handlers as their context."""

    def __init__(
        self,
        network: Network,
        connection: Connection,
        method: str,
        number: int,
        answer: Callable[[bytes | Status], None],
    ) -> None:
        self.requests: asyncio.Queue[bytes | None] = asyncio.Queue()
        self._network = network
        self._connection = connection
        self._method = method
        self._number = -1 - number
        self._answer = answer
        self._lane = Lane(f"{method} <", connection, connection.listener.process)
        self._serialise: Callable[[Any], bytes] = bytes
        self._status = _OK
        self._task: asyncio.Task[None] | None = None

    # ---- what the network does --------------------------------------------------------------------------------------

    def begin(self, _: bytes = b"") -> None:
        """Start handling the call."""
        self._task = self._connection.listener.process.spawn(self._serve())
        self._connection.on_break[self._number] = self.cancel

    def cancel(self, _: bytes = b"") -> None:
        """Cancel the handler: the client has gone."""
        if self._task is not None:
            self._task.cancel()

    # ---- what a handler does ----------------------------------------------------------------------------------------

    def peer(self) -> str:
        """Return the peer as a server sees it."""
        return f"memory:{self._connection.number}"

    def invocation_metadata(self) -> tuple[tuple[str, str], ...]:
        """Return no headers: callers have no credentials."""
        return ()

    def auth_context(self) -> dict[str, tuple[bytes, ...]]:
        """Return nothing of TLS."""
        return {}

    async def write(self, message: Any) -> None:
        """Send a message of the response."""
        self._network.send(self._lane, self._serialise(message), self._answer)

    async def abort(
        self, code: grpc.StatusCode, details: str = "", trailing_metadata: tuple[tuple[str, bytes], ...] = ()
    ) -> None:
        """End the call with this status."""
        self._finish(Status(code, details, trailing_metadata))
        raise grpc.aio.AbortError

    def set_code(self, code: grpc.StatusCode) -> None:
        """Have the call end with this status once its handler returns."""
        self._status = Status(code, self._status.details, ())

    def set_details(self, details: str) -> None:
        """Have the call end with these details once its handler returns."""
        self._status = Status(self._status.code, details, ())

    async def _serve(self) -> None:
        try:
            await self._handle()
            self._finish(self._status)
        except grpc.aio.AbortError:
            pass
        except asyncio.CancelledError:
            raise
        except Exception as error:
            self._network.failures.append(f"{self._method}: {error!r}")
            self._finish(Status(grpc.StatusCode.UNKNOWN, repr(error)))
        finally:
            self._connection.on_break.pop(self._number, None)

    async def _handle(self) -> None:
        handler = self._handler()
        if handler is None:
            await self.abort(grpc.StatusCode.UNIMPLEMENTED, f"{self._method} is not served")
            return
        self._serialise = handler.response_serializer or bytes
        behaviour = next(
            found
            for found in (handler.unary_unary, handler.unary_stream, handler.stream_unary, handler.stream_stream)
            if found is not None
        )
        requests = _Requests(self.requests, handler.request_deserializer or bytes)
        answer = behaviour(requests if handler.request_streaming else await anext(requests), self)
        if hasattr(answer, "__aiter__"):
            async for message in answer:
                await self.write(message)
        elif handler.response_streaming:
            await answer
        else:
            message = await answer
            if self._status is _OK:
                await self.write(message)

    def _handler(self) -> "grpc.RpcMethodHandler[Any, Any] | None":
        details = _Details(self._method, ())
        found = (handler.service(details) for handler in self._connection.listener.handlers)
        return next((handler for handler in found if handler is not None), None)

    def _finish(self, status: Status) -> None:
        self._network.send(self._lane, status.code.name.encode(), lambda _: self._answer(status))


class _Requests:
    """The messages of a client; not a generator, which would end whenever garbage is collected."""

    def __init__(self, inbox: "asyncio.Queue[bytes | None]", deserialise: Callable[[bytes], Any]) -> None:
        self._inbox = inbox
        self._deserialise = deserialise

    def __aiter__(self) -> "_Requests":
        return self

    async def __anext__(self) -> Any:
        if (message := await self._inbox.get()) is None:
            raise StopAsyncIteration
        return self._deserialise(message)


@dataclass(frozen=True)
class _Details:
    """The details by which gRPC looks up a handler."""

    method: str
    invocation_metadata: tuple[()]
