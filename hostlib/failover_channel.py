"""Channel to the active controller among several addresses."""

from collections.abc import AsyncIterator, Sequence

from hostlib.channel import Channel
from hostlib.credentials import Credentials
from hostlib.errors import ControllerError, UnreachableError
from hostlib.wire.methods import Method, RequestT, ResponseT


class FailoverChannel:
    """Calls the address that answered last, and the next one if it does not answer. Close it after use.

    A passive controller refuses to answer. Once another address has answered, streams from the previous one are
    cancelled, since its controller may no longer be active. Calls raise what ``Channel`` raises; UnreachableError means
    that no address answered. The constructor raises ValueError for credentials that cannot be used.
    """

    def __init__(self, addresses: Sequence[str], credentials: Credentials | None = None) -> None:
        credentials = credentials or Credentials.from_environment()
        self._channels = [Channel(address, credentials) for address in addresses]
        self._current = self._channels[0]

    def close(self) -> None:
        """Close all connections; streams end."""
        for channel in self._channels:
            channel.close()

    async def call(self, method: Method[RequestT, ResponseT], request: RequestT, deadline_s: float | None) -> ResponseT:
        """Send a request and return the response; every address has ``deadline_s`` to answer."""
        unreachable: list[UnreachableError] = []
        for channel in self._in_turn():
            try:
                response = await channel.call(method, request, deadline_s)
            except UnreachableError as error:
                unreachable.append(error)
            except ControllerError:
                self._note_answer(channel)
                raise
            else:
                self._note_answer(channel)
                return response
        raise _all_of(unreachable)

    async def stream(
        self, method: Method[RequestT, ResponseT], request: RequestT, deadline_s: float | None
    ) -> AsyncIterator[ResponseT]:
        """Send a request and yield the responses, all from one address."""
        unreachable: list[UnreachableError] = []
        for channel in self._in_turn():
            has_begun = False
            try:
                async for response in channel.stream(method, request, deadline_s):
                    has_begun = True
                    self._note_answer(channel)
                    yield response
            except UnreachableError as error:
                if has_begun:
                    raise
                unreachable.append(error)
            else:
                return
        raise _all_of(unreachable)

    def _in_turn(self) -> list[Channel]:
        first = self._channels.index(self._current)
        return self._channels[first:] + self._channels[:first]

    def _note_answer(self, channel: Channel) -> None:
        former, self._current = self._current, channel
        if former is not channel:
            former.end_streams()


def _all_of(errors: Sequence[UnreachableError]) -> UnreachableError:
    return UnreachableError("; ".join(map(str, errors)))
