"""An HTTP server of a controller in this process, and requests to it."""

import http.client
import ssl
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from urllib.parse import urlsplit

from starlette.routing import BaseRoute

from controller.access.tls_files import ServerTls
from controller.web import server
from controller.web.application import application
from controller.web.presence import Presence
from tests.patience import PATIENCE_S


@asynccontextmanager
async def serving(
    presence: Presence, routes: Sequence[BaseRoute] = (), tls: ServerTls | None = None
) -> AsyncIterator[str]:
    """Serve routes beside health while the context lasts; gives the URL."""
    async with server.serving("127.0.0.1:0", tls, application(presence, routes, is_local=True)) as url:
        yield url


@dataclass(frozen=True)
class Answer:
    """An answer to a GET request."""

    status: int
    body: str
    content_type: str


def get(url: str, path: str, headers: dict[str, str] | None = None, context: ssl.SSLContext | None = None) -> Answer:
    """Make a GET request on a connection of its own."""
    at = urlsplit(url)
    assert at.hostname is not None
    connection: http.client.HTTPConnection = (
        http.client.HTTPConnection(at.hostname, at.port, timeout=PATIENCE_S)
        if context is None
        else http.client.HTTPSConnection(at.hostname, at.port, timeout=PATIENCE_S, context=context)
    )
    try:
        connection.request("GET", path, headers=headers or {})
        answer = connection.getresponse()
        return Answer(answer.status, answer.read().decode(), answer.getheader("Content-Type") or "")
    finally:
        connection.close()
