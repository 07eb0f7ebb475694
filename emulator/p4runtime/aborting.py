"""Context manager that ends a gRPC call with the status of a refused request."""

from types import TracebackType
from typing import Any

import grpc

from emulator.p4runtime.errors import STATUS_DETAILS_KEY, BatchError, RequestError


class Aborting:
    """Ends the call with the status of a RequestError raised inside."""

    def __init__(self, context: grpc.aio.ServicerContext[Any, Any]) -> None:
        self._context = context

    async def __aenter__(self) -> None:
        pass

    async def __aexit__(
        self, _kind: type[BaseException] | None, error: BaseException | None, _traceback: TracebackType | None
    ) -> None:
        if isinstance(error, BatchError):
            details = ((STATUS_DETAILS_KEY, error.status().SerializeToString()),)
            await self._context.abort(error.code, str(error), details)
        if isinstance(error, RequestError):
            await self._context.abort(error.code, str(error))
