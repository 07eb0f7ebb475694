"""The gRPC handler that passes calls to the active controller, and refuses them while this process does not lead."""

import asyncio
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from contextlib import asynccontextmanager, contextmanager
from typing import Any

import grpc
import grpc.aio

NOT_LEADING = "this controller does not lead"
"""The beginning of a refusal; a host that gets one tries its next address."""

_Context = grpc.aio.ServicerContext[Any, Any]

_KINDS: dict[tuple[bool, bool], tuple[str, Callable[..., "grpc.RpcMethodHandler[Any, Any]"]]] = {
    (False, False): ("unary_unary", grpc.unary_unary_rpc_method_handler),
    (False, True): ("unary_stream", grpc.unary_stream_rpc_method_handler),
    (True, False): ("stream_unary", grpc.stream_unary_rpc_method_handler),
    (True, True): ("stream_stream", grpc.stream_stream_rpc_method_handler),
}
"""By whether requests and responses are streams, the attribute of a handler and what makes one."""


class _ActiveCalls:
    """The handlers of the active controller and the calls in progress, which end when it does."""

    def __init__(self, handlers: Sequence[grpc.GenericRpcHandler]) -> None:
        self.handlers = tuple(handlers)
        self.is_over = False
        self.all_ended = asyncio.Event()
        """Set once all calls have ended that ``end`` has met."""
        self._calls: dict[asyncio.Timeout, None] = {}

    def end(self) -> None:
        """End all calls."""
        self.is_over = True
        if not self._calls:
            self.all_ended.set()
        for call in tuple(self._calls):
            call.reschedule(asyncio.get_running_loop().time())

    @contextmanager
    def holding(self, call: asyncio.Timeout) -> Iterator[None]:
        """Have ``end`` end this call while the context lasts."""
        self._calls[call] = None
        try:
            yield
        finally:
            del self._calls[call]
            if self.is_over and not self._calls:
                self.all_ended.set()


class LeaderGate(grpc.GenericRpcHandler):
    """Passes calls to the controller that is being served; refuses them where there is none.

    ``leader`` returns a sentence about who leads, for refusals; it is empty where that is unknown.

    Example::

        gate = LeaderGate(lambda: leadership.known)
        server.add_generic_rpc_handlers((gate,))
        with gate.serving(controller.handlers):
            ...
    """

    def __init__(self, leader: Callable[[], str]) -> None:
        self._leader = leader
        self._active: _ActiveCalls | None = None
        self._last: _ActiveCalls | None = None

    async def all_ended(self) -> None:
        """Wait until the calls have ended that were in progress when ``serving`` ended."""
        if self._last is not None:
            await self._last.all_ended.wait()

    @contextmanager
    def serving(self, handlers: Sequence[grpc.GenericRpcHandler]) -> Iterator[None]:
        """Pass calls to these handlers while the context lasts; refuse those in progress when it ends."""
        self._active = active = _ActiveCalls(handlers)
        try:
            yield
        finally:
            self._active, self._last = None, active
            active.end()

    def service(self, handler_call_details: grpc.HandlerCallDetails) -> "grpc.RpcMethodHandler[Any, Any] | None":
        """Return the handler of a call; see gRPC."""
        active = self._active
        if active is None:
            # Of a stream: it answers without a message.
            return grpc.stream_stream_rpc_method_handler(self._refuse)
        for handler in active.handlers:
            if (found := handler.service(handler_call_details)) is not None:
                return self._ending_with(active, found)
        return None

    def _ending_with(
        self, active: _ActiveCalls, found: "grpc.RpcMethodHandler[Any, Any]"
    ) -> "grpc.RpcMethodHandler[Any, Any]":
        """The same handler, whose calls are refused once the controller is not active any more."""
        kind, handler_of = _KINDS[found.request_streaming, found.response_streaming]
        respond = getattr(found, kind)

        async def answer(request: Any, context: _Context) -> Any:
            async with self._during(active, context):
                return await respond(request, context)
            return None

        async def stream(request: Any, context: _Context) -> AsyncIterator[Any]:
            responses = respond(request, context)
            while True:
                response = None
                async with self._during(active, context):
                    response = await anext(responses, None)
                if response is None:
                    return
                yield response

        ending = stream if found.response_streaming else answer
        return handler_of(ending, found.request_deserializer, found.response_serializer)

    @asynccontextmanager
    async def _during(self, active: _ActiveCalls, context: _Context) -> AsyncIterator[None]:
        try:
            async with asyncio.timeout(0 if active.is_over else None) as call:
                with active.holding(call):
                    yield
        except TimeoutError:
            if not active.is_over:
                raise
            self._set_refusal(context)

    async def _refuse(self, _: object, context: _Context) -> AsyncIterator[bytes]:
        self._set_refusal(context)
        nothing: tuple[bytes, ...] = ()
        for message in nothing:
            yield message

    def _set_refusal(self, context: _Context) -> None:
        """Have the call end as refused. ``abort`` would do that too, but fails where it was called before."""
        leader = self._leader()
        context.set_code(grpc.StatusCode.UNAVAILABLE)
        context.set_details(f"{NOT_LEADING}: {leader}" if leader else NOT_LEADING)
