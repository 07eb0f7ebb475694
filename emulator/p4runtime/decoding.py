"""Refuse requests that cannot be decoded, as a server's interceptor; gRPC would log a traceback for each."""

from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any, TypeAlias

import grpc
from google.protobuf.message import DecodeError

from emulator.p4runtime.errors import RequestError, invalid_argument

_Handler: TypeAlias = "grpc.RpcMethodHandler[Any, Any] | None"
_Continuation: TypeAlias = "Callable[[grpc.HandlerCallDetails], Awaitable[_Handler]]"


class _Undecodable:
    """Stands for a request whose bytes are none."""


class DecodingInterceptor(grpc.aio.ServerInterceptor):
    """Ends calls whose request cannot be decoded with INVALID_ARGUMENT."""

    async def intercept_service(
        self, continuation: _Continuation, handler_call_details: grpc.HandlerCallDetails
    ) -> _Handler:
        """Return the handler of a call, in which an undecodable request is an error of its own."""
        handler: Any = await continuation(handler_call_details)
        if handler is None:
            return None
        coders = _tolerant(handler.request_deserializer), handler.response_serializer
        if handler.stream_stream is not None:
            return grpc.stream_stream_rpc_method_handler(_checked_stream(handler.stream_stream), *coders)
        if handler.unary_stream is not None:
            return grpc.unary_stream_rpc_method_handler(_checked(handler.unary_stream), *coders)
        return grpc.unary_unary_rpc_method_handler(_checked(handler.unary_unary), *coders)


def _tolerant(decode: Callable[[bytes], Any]) -> Callable[[bytes], Any]:
    def decode_or_mark(octets: bytes) -> Any:
        try:
            return decode(octets)
        except DecodeError:
            return _Undecodable()

    return decode_or_mark


def _checked(behaviour: Callable[..., Awaitable[Any]]) -> Callable[..., Awaitable[Any]]:
    async def checked(request: Any, context: grpc.aio.ServicerContext[Any, Any]) -> Any:
        if isinstance(request, _Undecodable):
            error = _refusal()
            await context.abort(error.code, str(error))
        return await behaviour(request, context)

    return checked


def _checked_stream(behaviour: Callable[..., Awaitable[Any]]) -> Callable[..., Awaitable[Any]]:
    async def requests(given: AsyncIterator[Any]) -> AsyncIterator[Any]:
        async for request in given:
            if isinstance(request, _Undecodable):
                raise _refusal()
            yield request

    async def checked(given: AsyncIterator[Any], context: grpc.aio.ServicerContext[Any, Any]) -> Any:
        return await behaviour(requests(given), context)

    return checked


def _refusal() -> RequestError:
    return invalid_argument("the request cannot be decoded")
