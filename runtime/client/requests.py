"""Requests to the server that are answered."""

from collections.abc import Callable
from queue import Empty, SimpleQueue

from runtime import messages
from runtime.client.connection import ServerConnection
from runtime.errors import RefusedError, RuntimeFailure
from runtime.frames import Frame

_PATIENCE_S = 60.0


class Requests:
    """Asks the server, and waits for its answers."""

    def __init__(self, connection: ServerConnection) -> None:
        self._connection = connection

    def ask(self, make: Callable[[int], object], timeout_s: float | None = _PATIENCE_S) -> object:
        """Return the answer to the message that ``make`` makes of a request's number.

        Raises RefusedError, what ended the connection, or TimeoutError.
        """
        return self.ask_for(make).next(timeout_s)

    def ask_for(self, make: Callable[[int], object], before: type | None = None) -> "Answers":
        """Return the answers to a request as they come: perhaps one of the class ``before``, and the last one."""
        answers = Answers(before)
        self._connection.ask(make, answers.take)
        return answers


class Answers:
    """The answers to a request."""

    def __init__(self, before: type | None) -> None:
        self._before = before
        self._answers: SimpleQueue[object] = SimpleQueue()

    def take(self, message: object, _: Frame | None) -> bool:
        """Take an answer; return whether it is the last one."""
        self._answers.put(error_of(message) if isinstance(message, messages.Refused) else message)
        return self._before is None or not isinstance(message, self._before)

    def next(self, timeout_s: float | None = None) -> object:
        """Return the next answer. Raises it if it is an error, and TimeoutError."""
        try:
            answer = self._answers.get(timeout=timeout_s)
        except Empty:
            raise TimeoutError(f"there is no answer after {timeout_s} s") from None
        if isinstance(answer, RuntimeFailure):
            raise answer
        return answer


def error_of(message: object) -> RuntimeFailure:
    """Return an answer other than the one that was asked for as an error."""
    if isinstance(message, messages.Refused):
        return RefusedError(message.message)
    return message if isinstance(message, RuntimeFailure) else RuntimeFailure(f"got {type(message).__name__}")
