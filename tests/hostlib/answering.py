"""A controller that gives one answer to one call, whatever is asked."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import grpc
import grpc.aio

from hostlib.wire import methods
from hostlib.wire.methods import Method


@asynccontextmanager
async def answering(method: Method[Any, Any], answer: Any) -> AsyncIterator[str]:
    """Yield the address of a controller that gives one answer to all questions; None: it is too old to know them."""

    async def give(*_: object) -> Any:
        return answer

    handlers: dict[str, grpc.RpcMethodHandler[Any, Any]] = {}
    if answer is not None:
        handlers[method.name] = grpc.unary_unary_rpc_method_handler(give, None, method.response.SerializeToString)
    server = grpc.aio.server()
    server.add_generic_rpc_handlers((grpc.method_handlers_generic_handler(methods.SERVICE, handlers),))
    port = server.add_insecure_port("127.0.0.1:0")
    await server.start()
    try:
        yield f"127.0.0.1:{port}"
    finally:
        await server.stop(None)
