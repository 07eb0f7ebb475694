"""A stream of events that fails says so in the log."""

import asyncio
from collections.abc import AsyncGenerator
from http.client import IncompleteRead

import pytest
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from controller.web.page.event_stream import EventStream
from controller.web.presence import Presence
from tests.controller.web.serving import get, serving
from tests.patience import PATIENCE_S


async def messages() -> AsyncGenerator[bytes, None]:
    yield b"data: 1\n\n"
    raise RuntimeError("the reason")


async def follow(request: Request) -> Response:
    return EventStream(messages(), request.state.abort, {})


def test_a_failure_is_logged(caplog: pytest.LogCaptureFixture) -> None:
    async def ask() -> None:
        async with asyncio.timeout(PATIENCE_S), serving(Presence(), [Route("/stream", follow)]) as url:
            with pytest.raises(IncompleteRead):
                await asyncio.to_thread(get, url, "/stream")

    asyncio.run(ask())
    (record,) = [each for each in caplog.records if each.name == "controller.web.refusals"]
    assert record.getMessage() == "/stream has failed"
    assert record.exc_info is not None
    assert str(record.exc_info[1]) == "the reason"
