"""gRPC channels and servers, and the host library's channel, over the network in memory."""

import asyncio
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import contextmanager
from functools import cache
from itertools import count
from typing import Any
from unittest.mock import patch

import grpc
import grpc.aio
from finsy.pbutil import from_text

from hostlib.channel import error_of
from hostlib.connection import Connection as HostConnection
from hostlib.wire.methods import Method, RequestT, ResponseT
from tests.chaos.calls import ClientCall
from tests.chaos.network import Connection, Network
from tests.chaos.processes import Process


class Line:
    """Calls of the current process to one address, over a connection that the first call makes."""

    def __init__(self, network: Network, address: str) -> None:
        process = Process.current()
        assert process is not None, "who calls is a process"
        self._network = network
        self._process = process
        self._address = address
        self._is_closed = False
        self._connection: Connection | None = None
        self._numbers = count()
        self._calls: dict[int, ClientCall] = {}

    def call(self, method: str, timeout_s: float | None, *, wait_for_ready: bool = False) -> ClientCall:
        """Start a call. Raises UsageError once closed."""
        if self._is_closed:
            raise grpc.aio.UsageError("Channel is closed.")
        call = ClientCall(self._network, self._connect, method, timeout_s, wait_for_ready=wait_for_ready)
        self._calls = {number: known for number, known in self._calls.items() if known.ended is None}
        self._calls[next(self._numbers)] = call
        return call

    async def ask(self, method: str, request: bytes, timeout_s: float | None) -> bytes:
        """Send one message and return the response; raises as ``ClientCall.read``."""
        call = self.call(method, timeout_s)
        call.write(request)
        if self._network.is_repeated(self._process):
            self.call(method, timeout_s).write(request)
        answer = await call.read()
        assert answer is not None
        return answer

    def close(self) -> None:
        """Cancel all calls and close the connection."""
        self._is_closed = True
        for call in self._calls.values():
            call.cancel()
        if self._connection is not None:
            self._network.close(self._connection)

    def _connect(self) -> Connection | None:
        if self._connection is None or not self._connection.is_up:
            self._connection = self._network.connect(self._process, self._address)
        return self._connection


class MemoryChannel:
    """A channel of ``grpc.aio``, as far as generated stubs and finsy use one."""

    def __init__(self, network: Network, address: str) -> None:
        self._line = Line(network, address)

    def unary_unary(
        self, method: str, request_serializer: Any, response_deserializer: Any, **_: object
    ) -> Callable[..., Any]:
        async def ask(request: Any, timeout: float | None = None) -> Any:
            return response_deserializer(await self._line.ask(method, request_serializer(request), timeout))

        return ask

    def unary_stream(
        self, method: str, request_serializer: Any, response_deserializer: Any, **_: object
    ) -> Callable[..., Any]:
        async def ask(request: Any, timeout: float | None = None) -> AsyncIterator[Any]:
            call = self._line.call(method, timeout)
            call.write(request_serializer(request))
            while (answer := await call.read()) is not None:
                yield response_deserializer(answer)

        return ask

    def stream_stream(
        self, method: str, request_serializer: Any, response_deserializer: Any, **_: object
    ) -> Callable[..., Any]:
        def begin(wait_for_ready: bool = False) -> _Stream:
            call = self._line.call(method, None, wait_for_ready=wait_for_ready)
            return _Stream(call, request_serializer, response_deserializer)

        return begin

    async def close(self) -> None:
        self._line.close()

    async def __aenter__(self) -> "MemoryChannel":
        return self

    async def __aexit__(self, *_: object) -> None:
        self._line.close()


class _Stream:
    """A stream of ``grpc.aio`` in both directions."""

    def __init__(
        self, call: ClientCall, serialise: Callable[[Any], bytes], deserialise: Callable[[bytes], Any]
    ) -> None:
        self._call = call
        self._serialise = serialise
        self._deserialise = deserialise

    def done(self) -> bool:
        return self._call.ended is not None

    def cancel(self) -> None:
        self._call.cancel()

    async def write(self, message: Any) -> None:
        if self.done():
            raise asyncio.InvalidStateError("RPC already finished.")
        self._call.write(self._serialise(message))

    async def read(self) -> Any:
        message = await self._call.read()
        return grpc.aio.EOF if message is None else self._deserialise(message)


class MemoryServer:
    """A server in memory, to which generated code and controllers add their handlers."""

    def __init__(self) -> None:
        self.handlers: list[grpc.GenericRpcHandler] = []

    def add_generic_rpc_handlers(self, handlers: Any) -> None:
        self.handlers += handlers

    def add_registered_method_handlers(self, *_: object) -> None:
        """Do nothing: these handlers only make calls faster."""


class MemoryHostChannel:
    """The host library's channel to one address, with calls in memory."""

    def __init__(self, network: Network, address: str) -> None:
        self._line = Line(network, address)
        self._streams: list[ClientCall] = []

    def close(self) -> None:
        self._line.close()

    def end_streams(self) -> None:
        for stream in tuple(self._streams):
            stream.end()

    async def call(self, method: Method[RequestT, ResponseT], request: RequestT, deadline_s: float | None) -> ResponseT:
        try:
            answer = await self._line.ask(method.path, request.SerializeToString(), deadline_s)
        except grpc.RpcError as error:
            raise error_of(error, method) from None
        return method.response.FromString(answer)

    async def stream(
        self, method: Method[RequestT, ResponseT], request: RequestT, deadline_s: float | None
    ) -> AsyncIterator[ResponseT]:
        call = self._line.call(method.path, deadline_s)
        call.write(request.SerializeToString())
        self._streams.append(call)
        try:
            while (answer := await call.read()) is not None:
                yield method.response.FromString(answer)
        except grpc.RpcError as error:
            raise error_of(error, method) from None
        finally:
            self._streams.remove(call)
            call.cancel()


@contextmanager
def in_memory(network: Network, host_connection: Callable[..., HostConnection]) -> Iterator[None]:
    """Make all connections over this network meanwhile; those of jobs are made by ``host_connection``.

    finsy would read the P4Info for every switch of every controller; here they share one.
    """
    with (
        patch("finsy.pbutil.from_text", cache(from_text)),
        patch("grpc.aio.insecure_channel", lambda address, *_, **__: MemoryChannel(network, address)),
        patch("hostlib.failover_channel.Channel", lambda address, *_: MemoryHostChannel(network, address)),
        patch("hostlib.client.Connection", host_connection),
    ):
        yield
