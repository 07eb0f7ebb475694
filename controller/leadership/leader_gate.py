"""Whom calls reach: the controller in office, and without one a refusal, at which hosts try their next address."""

import asyncio
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from contextlib import asynccontextmanager, contextmanager
from typing import Any

import grpc
import grpc.aio

LEADS_NOT = "this controller does not lead"
"""So a refusal begins."""

_Context = grpc.aio.ServicerContext[Any, Any]


class _Office:
    """The handlers of a controller, and the calls that they are at, which end with it."""

    def __init__(self, handlers: Sequence[grpc.GenericRpcHandler]) -> None:
        self.handlers = tuple(handlers)
        self.is_over = False
        self._calls: dict[asyncio.Timeout, None] = {}

    def end(self) -> None:
        """End all calls."""
        self.is_over = True
        for call in tuple(self._calls):
            call.reschedule(asyncio.get_running_loop().time())

    @contextmanager
    def holding(self, call: asyncio.Timeout) -> Iterator[None]:
        """A call is being answered meanwhile."""
        self._calls[call] = None
        try:
            yield
        finally:
            del self._calls[call]


class Reception(grpc.GenericRpcHandler):
    """The handler of a server: it hands calls to whoever is seated. ``known`` says who leads, if that is known."""

    def __init__(self, known: Callable[[], str]) -> None:
        self._known = known
        self._office: _Office | None = None

    @contextmanager
    def seated(self, handlers: Sequence[grpc.GenericRpcHandler]) -> Iterator[None]:
        """Let these answer meanwhile; calls that they are at when it ends are refused."""
        self._office = office = _Office(handlers)
        try:
            yield
        finally:
            self._office = None
            office.end()

    def service(self, handler_call_details: grpc.HandlerCallDetails) -> "grpc.RpcMethodHandler[Any, Any] | None":
        """See gRPC."""
        office = self._office
        if office is None:
            return grpc.unary_unary_rpc_method_handler(self._refused)
        for handler in office.handlers:
            if (found := handler.service(handler_call_details)) is not None:
                return self._within(office, found)
        return None

    def _within(self, office: _Office, found: "grpc.RpcMethodHandler[Any, Any]") -> "grpc.RpcMethodHandler[Any, Any]":
        """A handler of one request that answers as this one as long as the office lasts."""
        coders = found.request_deserializer, found.response_serializer
        # One of the two; they are declared as those of servers with threads.
        respond: Any = found.unary_stream if found.response_streaming else found.unary_unary

        async def answer(request: Any, context: _Context) -> Any:
            async with self._during(office, context):
                return await respond(request, context)

        async def stream(request: Any, context: _Context) -> AsyncIterator[Any]:
            responses = respond(request, context)
            while True:
                async with self._during(office, context):
                    try:
                        response = await anext(responses)
                    except StopAsyncIteration:
                        return
                yield response

        if found.response_streaming:
            return grpc.unary_stream_rpc_method_handler(stream, *coders)
        return grpc.unary_unary_rpc_method_handler(answer, *coders)

    @asynccontextmanager
    async def _during(self, office: _Office, context: _Context) -> AsyncIterator[None]:
        try:
            async with asyncio.timeout(0 if office.is_over else None) as call:
                with office.holding(call):
                    yield
        except TimeoutError:
            if not office.is_over:
                raise
            await self._refused(None, context)

    async def _refused(self, _: object, context: _Context) -> None:
        known = self._known()
        await context.abort(grpc.StatusCode.UNAVAILABLE, f"{LEADS_NOT}: {known}" if known else LEADS_NOT)
