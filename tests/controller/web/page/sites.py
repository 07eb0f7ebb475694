"""The page of a controller served in this process, and a browser's requests to it."""

import asyncio
import json
import logging
import ssl
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from http.client import HTTPConnection, HTTPResponse, HTTPSConnection
from typing import Any
from unittest.mock import patch
from urllib.parse import urlsplit

from controller.access.tls_files import ServerTls
from controller.events import EventKind, RecentEvents
from controller.web.application import application
from controller.web.page import feed, routes
from controller.web.presence import Presence
from controller.web.server import serving
from tests.controller.access.secured import Secured, secured
from tests.patience import PATIENCE_S


@dataclass(frozen=True)
class Site:
    url: str
    controller: Secured
    presence: Presence
    events: RecentEvents
    feed: feed.Feed


@asynccontextmanager
async def served_page(web_tls: ServerTls | None = None, **settings: Any) -> AsyncIterator[Site]:
    """Serve the page of a controller in this process."""
    presence, events = Presence(), RecentEvents()
    feeds: list[feed.Feed] = []

    def noted(*arguments: Any) -> feed.Feed:
        feeds.append(feed.Feed(*arguments))
        return feeds[-1]

    with patch.object(routes, "Feed", noted):
        async with (
            asyncio.timeout(PATIENCE_S),
            secured(**settings) as controller,
            routes.page_routes(
                presence, events, controller.core.calls.authenticator, is_secure=web_tls is not None
            ) as page,
            serving("127.0.0.1:0", web_tls, application(presence, page, is_local=True)) as url,
        ):
            with presence.of(controller.core.context):
                yield Site(url, controller, presence, events, feeds[0])


def connect_to(url: str, context: ssl.SSLContext | None) -> HTTPConnection:
    at = urlsplit(url)
    assert at.hostname is not None
    if context is None:
        return HTTPConnection(at.hostname, at.port, timeout=PATIENCE_S)
    return HTTPSConnection(at.hostname, at.port, timeout=PATIENCE_S, context=context)


async def answer_to(
    url: str,
    path: str,
    method: str = "GET",
    body: str | None = None,
    headers: Mapping[str, str] | None = None,
    context: ssl.SSLContext | None = None,
) -> tuple[int, str, Mapping[str, str]]:
    def ask() -> tuple[int, str, Mapping[str, str]]:
        connection = connect_to(url, context)
        try:
            connection.request(method, path, body, dict(headers or {}))
            answer = connection.getresponse()
            return answer.status, answer.read().decode(), dict(answer.getheaders())
        finally:
            connection.close()

    return await asyncio.to_thread(ask)


async def sign_in(url: str, token: str, context: ssl.SSLContext | None = None) -> tuple[int, str, str]:
    """Sign in; returns the status, the body, and the header that sets the cookie."""
    status, text, headers = await answer_to(url, "/page/session", "POST", json.dumps({"token": token}), context=context)
    return status, text, headers.get("set-cookie", "")


def message_of(answer: HTTPResponse, kind: str) -> tuple[str, str]:
    """Read the feed up to the next message of a kind; returns its id and its data."""
    fields: dict[str, str] = {}
    while line := answer.readline().decode():
        name, _, value = line.rstrip("\n").partition(": ")
        if line != "\n":
            fields[name] = value
        elif fields.get("event") == kind:
            return fields.get("id", ""), fields["data"]
        else:
            fields = {}
    raise EOFError("the feed has ended")


async def first_state(url: str, headers: Mapping[str, str] | None = None) -> tuple[str, dict[str, Any]]:
    def read() -> tuple[str, dict[str, Any]]:
        connection = connect_to(url, None)
        try:
            connection.request("GET", "/page/events", headers=dict(headers or {}))
            number, data = message_of(connection.getresponse(), "state")
            return number, json.loads(data)
        finally:
            connection.close()

    return await asyncio.to_thread(read)


def event_record(message: str) -> Any:
    record = logging.LogRecord("controller", logging.WARNING, "", 0, message, (), None)
    record.event = EventKind.SWITCH_AWAY
    record.fields = {"switch": "t0"}
    return record
