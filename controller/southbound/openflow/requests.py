"""Requests to one switch, each with a bounded wait for its answer; and writes in chunks, each with a barrier."""

import asyncio
from asyncio import Future
from collections import deque
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from contextlib import asynccontextmanager

from controller.southbound.openflow.bundles import Bundle, BundleStep, has_no_bundles
from controller.southbound.openflow.channel_errors import (
    AwayError,
    Misbehaviour,
    MisbehaviourError,
    Refusal,
    RefusedError,
)
from controller.southbound.openflow.connection import Connection
from controller.southbound.openflow.control_messages import ControlType, control_message
from controller.southbound.openflow.exchanges import Exchanges, Sent, numbered

_CHUNK_MESSAGES, _CHUNK_BYTES = 500, 256 * 1024
"""So many messages are sent at once; a barrier follows them."""
_CHUNKS_AHEAD = 1
"""So many chunks may be under way when another is sent: a slow switch has little to do before it answers an echo."""


class Requests:
    """What is asked of a switch over one connection.

    Args:
        connection: The connection.
        version: The version that it was agreed to speak.
        exchanges: Where answers and errors come in.
        answer_s: How long an answer, or the sending of a chunk, may take.
        give_up: Ends the connection, with the reason.
    """

    def __init__(
        self,
        connection: Connection,
        version: int,
        exchanges: Exchanges,
        answer_s: float,
        give_up: Callable[[MisbehaviourError], None],
    ) -> None:
        self._connection = connection
        self._version = version
        self._exchanges = exchanges
        self._answer_s = answer_s
        self._give_up = give_up
        self._closed_because = ""
        self._writing = asyncio.Lock()
        self._has_bundles = True
        self._num_bundles = 0
        self._num_sent = 0
        """Chunks of messages to be carried out."""
        self._num_passed = 0
        """Those of them that a barrier's answer has followed."""

    def end(self, reason: str) -> None:
        """Fail all that is under way, and all that comes."""
        self._closed_because = reason
        self._exchanges.end(AwayError(reason))

    def send(self, octets: bytes | bytearray) -> None:
        """Send bytes. Raises AwayError."""
        if self._closed_because:
            raise AwayError(self._closed_because)
        try:
            self._connection.send(octets)
        except MisbehaviourError as error:
            self._give_up(error)
            raise AwayError(str(error)) from error

    async def request(self, message: bytes) -> list[bytes]:
        """Send a message and return all parts of its answer. Raises RefusedError and AwayError."""
        whole = self._ask(message)
        async with self._patience("an answer"):
            return await whole

    async def settle(self) -> None:
        """Wait until the switch has carried out what was sent, also by writes that were cancelled.

        Raises AwayError.
        """
        if self._num_passed < (num_sent := self._num_sent):
            await self.request(control_message(self._version, ControlType.BARRIER_REQUEST))
            self._num_passed = max(self._num_passed, num_sent)

    async def write(self, messages: Sequence[bytes]) -> None:
        """Send messages; return when all are carried out. Raises RefusedError and AwayError."""
        async with self._writing:
            with self._exchanges.expect_errors(len(messages)) as sent:
                await self._deliver(messages, sent)
            _raise_refusals(sent)

    async def write_bundle(self, messages: Sequence[bytes]) -> None:
        """The same, all at once or none, where the switch has bundles."""
        async with self._writing:
            self._num_bundles += 1
            bundle = Bundle(self._version, self._num_bundles)
            if self._has_bundles:
                self._has_bundles = await self._opens(bundle)
            if self._has_bundles:
                await self._fill(bundle, messages)
                return
        await self.write(messages)

    async def _opens(self, bundle: Bundle) -> bool:
        try:
            await self.request(bundle.step(BundleStep.OPEN))
        except RefusedError as refused:
            if has_no_bundles(refused):
                return False
            raise
        return True

    async def _fill(self, bundle: Bundle, messages: Sequence[bytes]) -> None:
        """Add messages to an open bundle and commit it; where that fails, nothing of it is left at the switch."""
        others: tuple[Refusal, ...] = ()
        is_committed = False
        try:
            with self._exchanges.expect_errors(len(messages)) as sent:
                await self._deliver(messages, sent, bundle)
                if not sent.refusals:
                    is_committed = True  # or discarded, where the switch refuses
                    self._num_sent += 1
                    try:
                        await self.request(bundle.step(BundleStep.COMMIT))
                    except RefusedError as refused:
                        others = tuple(refused.refusals.values())
                    self._num_passed = self._num_sent
        finally:
            if not is_committed and not self._closed_because:
                self._ask(bundle.step(BundleStep.DISCARD))
        _raise_refusals(sent, others)

    async def _deliver(self, messages: Sequence[bytes], sent: Sent, bundle: Bundle | None = None) -> None:
        """Send messages in chunks, or add them to a bundle, and wait until the switch has taken in all of them."""
        barrier = control_message(self._version, ControlType.BARRIER_REQUEST)
        waiting: deque[Future[list[bytes]]] = deque()
        try:
            for start, chunk in _chunks(messages):
                first = sent.first + start
                self._num_sent += 1
                self.send(
                    numbered(chunk, first) if bundle is None else numbered(bundle.adding(chunk), first, bundle.inner_at)
                )
                async with self._patience("room for more messages"):
                    await self._connection.drain()
                waiting.append(self._ask(barrier))
                while len(waiting) > _CHUNKS_AHEAD:
                    await self._passed(waiting.popleft())
            while waiting:
                await self._passed(waiting.popleft())
            self._num_passed = self._num_sent  # nothing else is sent meanwhile
        finally:
            for barred in waiting:
                barred.cancel()

    async def _passed(self, barrier: "Future[list[bytes]]") -> None:
        async with self._patience("a barrier's answer"):
            await barrier

    def _ask(self, message: bytes) -> "Future[list[bytes]]":
        xid, whole = self._exchanges.expect_answer(message[1])
        try:
            self.send(numbered((message,), xid))
        except AwayError:
            whole.cancel()
            raise
        return whole

    @asynccontextmanager
    async def _patience(self, what: str) -> AsyncIterator[None]:
        """Give the switch up where the context takes too long. Raises AwayError then."""
        try:
            async with asyncio.timeout(self._answer_s):
                yield
        except TimeoutError:
            error = MisbehaviourError(Misbehaviour.SILENT, f"does not give {what} within {self._answer_s:g} s")
            self._give_up(error)
            raise AwayError(str(error)) from None


def _chunks(messages: Sequence[bytes]) -> Iterator[tuple[int, Sequence[bytes]]]:
    """Yield messages some at a time, with the index of the first."""
    start, num_bytes = 0, 0
    for index, message in enumerate(messages):
        if index - start >= _CHUNK_MESSAGES or (num_bytes + len(message) > _CHUNK_BYTES and index > start):
            yield start, messages[start:index]
            start, num_bytes = index, 0
        num_bytes += len(message)
    if start < len(messages):
        yield start, messages[start:]


def _raise_refusals(sent: Sent, others: Sequence[Refusal] = ()) -> None:
    if sent.refusals or others:
        raise RefusedError(sent.refusals, others, sent.count)
