"""Calls to whichever of several addresses answers: that of the controller which leads."""

from collections.abc import AsyncIterator, Sequence

from hostlib.channel import Channel
from hostlib.errors import ControllerError, UnreachableError
from hostlib.wire.methods import Method, RequestT, ResponseT


class Channels:
    """Calls to the address that has answered last, and on to the next where one does not; to be closed.

    A controller that does not lead says so in place of an answer. Once another address has answered, streams from the
    one before end: they may be those of a controller that nobody follows any longer. Calls raise as those of
    ``Channel``, UnreachableError where no address answers.
    """

    def __init__(self, addresses: Sequence[str]) -> None:
        self._channels = [Channel(address) for address in addresses]
        self._current = self._channels[0]

    def close(self) -> None:
        """End all connections; streams end."""
        for channel in self._channels:
            channel.close()

    async def call(self, method: Method[RequestT, ResponseT], request: RequestT, deadline_s: float | None) -> ResponseT:
        """One message for another; every address has ``deadline_s`` to answer in."""
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
        """One message for several, which all come from one address."""
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


def addresses_of(address: str | Sequence[str]) -> tuple[str, ...]:
    """One address or several, each once. Raises ValueError where there is none."""
    addresses = (address,) if isinstance(address, str) else tuple(dict.fromkeys(address))
    if not all(addresses) or not addresses:
        raise ValueError("address: expected HOST:PORT, or a list of them")
    return addresses


def _all_of(errors: Sequence[UnreachableError]) -> UnreachableError:
    return UnreachableError("; ".join(map(str, errors)))
