"""The HTTP application of a controller: its routes, and how refusals are answered."""

from collections.abc import Sequence

from starlette.applications import Starlette
from starlette.middleware import Middleware
from starlette.middleware.trustedhost import TrustedHostMiddleware
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response
from starlette.routing import BaseRoute, Route

from controller.access.errors import ForbiddenError, UnauthenticatedError
from controller.web.presence import Presence
from controller.web.refusals import CountedRequests, Refusals

_LOCAL_NAMES = ("localhost", "127.0.0.1", "[::1]")


def application(presence: Presence, further: Sequence[BaseRoute] = (), *, is_local: bool) -> Starlette:
    """The application with the routes of health and ``further`` ones.

    Everybody may ask for health, which says no more than whether it is there. ``is_local``: nobody but this machine
    reaches it, so that requests under other names are those of foreign pages (DNS rebinding), and are refused.
    """

    async def alive(_: Request) -> Response:
        return PlainTextResponse("up\n")

    async def ready(_: Request) -> Response:
        return PlainTextResponse("up\n" if presence.is_ready else "down\n", 200 if presence.is_ready else 503)

    refusals = Refusals()
    return Starlette(
        routes=[Route("/healthz", alive), Route("/readyz", ready), *further],
        middleware=[
            Middleware(CountedRequests),
            *([Middleware(TrustedHostMiddleware, allowed_hosts=_LOCAL_NAMES)] if is_local else []),
        ],
        exception_handlers={UnauthenticatedError: refusals.unauthenticated, ForbiddenError: refusals.forbidden},
    )
