"""Which answer and which error is of which message: by transaction ids, as OpenFlow has no order among answers."""

import asyncio
import struct
from asyncio import Future
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field

from controller.southbound.openflow.channel_errors import Misbehaviour, MisbehaviourError, Refusal, RefusedError
from controller.southbound.openflow.control_messages import ControlType
from controller.southbound.openflow.error_words import refusal_of
from controller.southbound.openflow.handshake import is_last

_XID = struct.Struct("!I")
XID_AT = 4
"""Where a header has the transaction id."""
_FIRST_XID = 0x100
"""Lower ones are of the handshake."""
_LAST_XID = 0xFFFF_FFFF
_OBJECT_BYTES = 100
"""What a part of an answer takes beside its bytes, about."""

_ANSWERED_ALIKE = ControlType.EXPERIMENTER, ControlType.BUNDLE_CONTROL
"""Requests whose answers are of the same type; all other answers are of the next one."""


@dataclass(slots=True)
class _Answer:
    """An answer that is waited for, and the parts of it that have come."""

    kind: int
    """The type of its messages."""
    whole: "Future[list[bytes]]"
    parts: list[bytes] = field(default_factory=list)
    num_bytes: int = 0


@dataclass(frozen=True, slots=True)
class Sent:
    """Messages without answers, by the id of the first, and what the switch refuses of them, by index."""

    first: int
    count: int
    refusals: dict[int, Refusal] = field(default_factory=dict)


class Exchanges:
    """The messages of a channel that wait for answers, or for errors.

    Args:
        most_bytes: The most bytes of all answers that are under way.
    """

    def __init__(self, most_bytes: int) -> None:
        self._most_bytes = most_bytes
        self._next = _FIRST_XID
        self._answers: dict[int, _Answer] = {}
        self._sent: list[Sent] = []

    def expect_answer(self, request: int) -> "tuple[int, Future[list[bytes]]]":
        """Return a transaction id, and what will be all parts of its answer, or RefusedError.

        ``request`` is the type of the message that is answered.

        It is waited for until it is done or cancelled.
        """
        xid = self._take(1)
        whole: Future[list[bytes]] = asyncio.get_running_loop().create_future()
        self._answers[xid] = _Answer(request if request in _ANSWERED_ALIKE else request + 1, whole)
        whole.add_done_callback(lambda _: self._answers.pop(xid, None))
        return xid, whole

    @contextmanager
    def expect_errors(self, count: int) -> Iterator[Sent]:
        """Collect the errors of so many messages while the context lasts."""
        sent = Sent(self._take(count), count)
        self._sent.append(sent)
        try:
            yield sent
        finally:
            self._sent.remove(sent)

    def take(self, message: bytes) -> None:
        """Take an answer or an error; what nobody waits for is let go.

        Raises:
            MisbehaviourError: It is malformed, or the answer does not end.
        """
        xid = _XID.unpack_from(message, XID_AT)[0]
        if message[1] == ControlType.ERROR:
            self._take_error(xid, refusal_of(message))
        elif (answer := self._answers.get(xid)) is not None and not answer.whole.done():
            self._take_part(answer, message)

    def end(self, error: Exception) -> None:
        """Fail all that is waited for."""
        for answer in list(self._answers.values()):
            if not answer.whole.done():
                answer.whole.set_exception(error)
                answer.whole.exception()  # also where nobody waits any more

    def _take(self, count: int) -> int:
        """Return the first of so many ids that follow one another; they begin again after four thousand million."""
        if self._next + count > _LAST_XID:
            self._next = _FIRST_XID
        first = self._next
        self._next += count
        return first

    def _take_error(self, xid: int, refusal: Refusal) -> None:
        if (answer := self._answers.get(xid)) is not None:
            if not answer.whole.done():
                answer.whole.set_exception(RefusedError({0: refusal}))
                answer.whole.exception()
            return
        for sent in self._sent:
            if sent.first <= xid < sent.first + sent.count:
                sent.refusals.setdefault(xid - sent.first, refusal)

    def _take_part(self, answer: _Answer, message: bytes) -> None:
        if message[1] != answer.kind:
            raise MisbehaviourError(
                Misbehaviour.GARBAGE, f"an answer of type {message[1]} where {answer.kind} is expected"
            )
        answer.parts.append(message)
        answer.num_bytes += len(message) + _OBJECT_BYTES
        if sum(each.num_bytes for each in self._answers.values()) > self._most_bytes:
            raise MisbehaviourError(Misbehaviour.ENDLESS, f"answers have more than {self._most_bytes:,} bytes")
        if is_last(message):
            answer.whole.set_result(answer.parts)


def numbered(messages: Sequence[bytes], first: int, inner_at: int | None = None) -> bytearray:
    """Return messages one after another, with transaction ids that count from ``first``.

    ``inner_at``: where each has another message inside, which has the same id.
    """
    octets, at = bytearray().join(messages), XID_AT
    for xid, message in enumerate(messages, first):
        _XID.pack_into(octets, at, xid)
        if inner_at is not None:
            _XID.pack_into(octets, at + inner_at, xid)
        at += len(message)
    return octets
