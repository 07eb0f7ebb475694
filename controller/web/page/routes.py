"""The routes of the page: its files for everybody, and all that they show for viewers."""

from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from functools import partial

from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response
from starlette.routing import BaseRoute, Route

from controller.access.authenticator import Authenticator
from controller.events import RecentEvents
from controller.web.page.answers import Answers
from controller.web.page.event_stream import EventStream
from controller.web.page.feed import Feed
from controller.web.page.files import HEADERS, PageFiles
from controller.web.page.visitors import Visitors
from controller.web.presence import Presence

_NOT_KEPT = {**HEADERS, "Cache-Control": "no-store"}
_TRY_AGAIN_S = 5

_Answer = Callable[[Request], Awaitable[Response]]


@asynccontextmanager
async def page_routes(
    presence: Presence, events: RecentEvents, authenticator: Authenticator, *, is_secure: bool
) -> AsyncIterator[Sequence[BaseRoute]]:
    """The routes of the page, which work while the context lasts.

    Args:
        presence: The active controller.
        events: What has happened.
        authenticator: Tells who looks.
        is_secure: Whether the page is behind TLS.
    """
    visitors = Visitors(authenticator, is_secure=is_secure)
    feed, files, answers = Feed(presence, events), PageFiles(), Answers(presence, visitors)

    async def follow(request: Request) -> Response:
        identity = visitors.viewer(request)
        address = "" if request.client is None else request.client.host
        account = str(identity) if identity.is_known else address
        if not feed.has_room(account):
            refusal = "too many browsers follow this page; close one and try again\n"
            return PlainTextResponse(refusal, 503, {**_NOT_KEPT, "Retry-After": str(_TRY_AGAIN_S)})
        last_seen, check = request.headers.get("last-event-id", ""), partial(visitors.viewer, request)
        return EventStream(feed.messages(account, last_seen, check), request.state.abort, _NOT_KEPT)

    try:
        yield (
            Route("/", files.answer),
            Route("/page/files/{file}", files.answer),
            Route("/page/session", _with_headers(visitors.who)),
            Route("/page/session", _with_headers(visitors.sign_in), methods=["POST"]),
            Route("/page/session", _with_headers(visitors.sign_out), methods=["DELETE"]),
            Route("/page/explain", _with_headers(answers.explain)),
            Route("/page/events", follow),
        )
    finally:
        await feed.close()


def _with_headers(answer: _Answer) -> _Answer:
    async def answered(request: Request) -> Response:
        response = await answer(request)
        response.headers.update(_NOT_KEPT)
        return response

    return answered
