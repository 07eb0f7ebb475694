"""Answers refusals, slows down whoever causes many, and counts all requests: the same over HTTP as over gRPC."""

import asyncio
import logging
from collections.abc import Mapping

from starlette.requests import ClientDisconnect, Request
from starlette.responses import PlainTextResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from controller.access.identity import Identity
from controller.access.refusal_log import RefusalLog
from controller.api.calls import FAILED_IDENTITY_UNITS
from controller.api.rate_limiter import RateLimiter, RateLimitError
from controller.metrics import CALLS, TENANTS

_LOG = logging.getLogger(__name__)

_STATUSES: Mapping[int, str] = {
    401: "UNAUTHENTICATED",
    403: "PERMISSION_DENIED",
    404: "NOT_FOUND",
    429: "RESOURCE_EXHAUSTED",
    503: "UNAVAILABLE",
}
"""The gRPC status of an HTTP status; of all others by its hundreds."""
_OF_HUNDREDS: Mapping[int, str] = {2: "OK", 3: "OK", 4: "INVALID_ARGUMENT"}


class Refusals:
    """The answers to callers who may not do what they ask for."""

    def __init__(self) -> None:
        self._limiter = RateLimiter()
        self._log = RefusalLog(lambda: asyncio.get_running_loop().time())

    async def unauthenticated(self, request: Request, error: Exception) -> Response:
        """Refuse a request that does not say who makes it; whoever makes many waits, and is refused at last."""
        address = _address_of(request)
        try:
            await self._limiter.spend(address, FAILED_IDENTITY_UNITS)
        except RateLimitError as refusal:
            return PlainTextResponse(f"{refusal}\n", 429)
        self._log.tell(request.url.path, address, address, str(error))
        return PlainTextResponse(f"{error}\n", 401, {"WWW-Authenticate": "Bearer"})

    async def forbidden(self, request: Request, error: Exception) -> Response:
        """Refuse a request that is for another role."""
        address = _address_of(request)
        self._log.tell(request.url.path, address, address, str(error))
        return PlainTextResponse(f"{error}\n", 403)


class CountedRequests:
    """Middleware that counts requests by the tenant of their caller and their status, and logs what fails."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request."""

        def count(status: str) -> None:
            caller: Identity | None = scope.get("state", {}).get("caller")
            CALLS.labels("http", TENANTS.of("" if caller is None else caller.tenant), status).inc()

        async def send_counted(message: Message) -> None:
            if message["type"] == "http.response.start":
                status: int = message["status"]
                count(_STATUSES.get(status) or _OF_HUNDREDS.get(status // 100, "INTERNAL"))
            await send(message)

        try:
            await self._app(scope, receive, send_counted)
        except ClientDisconnect:
            count("CANCELLED")
        except Exception:
            # Starlette answers with status 500, and tells nobody.
            count("INTERNAL")
            _LOG.exception("%s has failed", scope.get("path"))
            raise


def _address_of(request: Request) -> str:
    return "" if request.client is None else request.client.host
