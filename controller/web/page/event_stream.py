"""A response of server-sent events (HTML standard, section 9.2), which ends where the browser does not read."""

import asyncio
from collections.abc import AsyncGenerator, Callable, Mapping
from contextlib import aclosing

from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from controller.access.errors import AccessError

TAKE_LIMIT_S = 30.0
"""How long a browser may take for one message."""


class EventStream(Response):
    """Sends messages, each once there is room, until the browser goes; ``abort`` ends the connection at once."""

    def __init__(
        self, messages: AsyncGenerator[bytes, None], abort: Callable[[], None], headers: Mapping[str, str]
    ) -> None:
        super().__init__(headers=headers, media_type="text/event-stream")
        del self.headers["content-length"]
        self._messages = messages
        self._abort = abort

    async def __call__(self, _: Scope, receive: Receive, send: Send) -> None:
        """See Starlette's ``Response``."""
        sending = asyncio.create_task(self._send(send))
        leaving = asyncio.create_task(_gone(receive))
        try:
            await asyncio.wait((sending, leaving), return_when=asyncio.FIRST_COMPLETED)
        finally:
            sending.cancel()
            leaving.cancel()
            await asyncio.gather(sending, leaving, return_exceptions=True)
        if not sending.cancelled():
            sending.result()  # raises what has failed

    async def _send(self, send: Send) -> None:
        await send({"type": "http.response.start", "status": 200, "headers": self.raw_headers})
        try:
            async with aclosing(self._messages) as messages:
                async for message in messages:
                    async with asyncio.timeout(TAKE_LIMIT_S):
                        await send({"type": "http.response.body", "body": message, "more_body": True})
        except AccessError:
            pass  # whoever asks again hears why
        except TimeoutError:
            self._abort()  # a friendly end would wait for it to read
            return
        await send({"type": "http.response.body", "body": b"", "more_body": False})


async def _gone(receive: Receive) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass
