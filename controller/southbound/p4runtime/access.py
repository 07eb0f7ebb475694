"""Read and write one switch that finsy keeps connected."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from typing import cast

from finsy import GRPCStatusCode, P4ClientError, Switch
from finsy.proto import p4r
from google.protobuf.message import DecodeError
from grpc.aio import UsageError

from controller.background import Worker
from controller.southbound.fencing import Grant
from controller.southbound.p4runtime.counter_reading import CounterEntry
from controller.southbound.p4runtime.encoding import Encoder
from controller.southbound.p4runtime.entries import Entity, is_base
from controller.southbound.p4runtime.held_program import NO_PROGRAM, held_config
from controller.southbound.p4runtime.programs import Program
from controller.southbound.p4runtime.reading import EntityReader, KnownEncodings, UnreadableAnswerError
from controller.southbound.p4runtime.reconnecting import ConnectionLostError, reason_of
from controller.southbound.p4runtime.states import State, Update
from controller.southbound.states import EntryKey
from controller.southbound.switch_access import SwitchAwayError, SwitchRefusalError

_AWAY = (GRPCStatusCode.UNAVAILABLE, GRPCStatusCode.CANCELLED)
_DEADLINE_S = 10.0
"""A switch that leaves a request unanswered for so long counts as away."""


class SwitchAccess:
    """Access to a switch that finsy keeps connected; see Access.

    Where base routing is somebody else's, ``on_base`` is called with its entries whenever they are read otherwise than
    before, and they count as none of the controller's.
    """

    def __init__(
        self,
        switch: Switch,
        program: Program,
        encoder: Encoder,
        reader: EntityReader,
        grant: Grant | None,
        worker: Worker,
        on_base: Callable[[State], Awaitable[None]] | None = None,
    ) -> None:
        self._switch = switch
        self._program = program
        self._encoder = encoder
        self._reader = reader
        self._grant = grant
        self._worker = worker
        self._known = KnownEncodings()
        self._on_base = on_base
        self._base: State | None = None
        self._reading = asyncio.Lock()

    async def read(self, expected: State) -> dict[EntryKey, Entity]:
        """Read the controller's own entries, default entries, members and groups; see Access."""
        # One after the other, so that what is read last is the newest.
        async with self._reading:
            return await self._read(expected)

    async def _read(self, expected: State) -> dict[EntryKey, Entity]:
        request = p4r.ReadRequest(device_id=self._switch.device_id, entities=self._reader.wanted)
        answer = self._reader.answer()
        async with self._own_errors():
            client = self._switch._p4client
            assert client is not None
            async for message in client.request_iter(request):
                answer.add(message)
        async with self._own_errors(deadline_s=None):
            found = await self._reader.decode(answer, {**(self._base or {}), **expected}, self._known)
        if self._on_base is None:
            return found
        base = {key: entity for key, entity in found.items() if is_base(key)}
        # Entities that do the same are identical, as they were expected.
        if (
            self._base is None
            or base.keys() != self._base.keys()
            or any(base[key] is not self._base[key] for key in base)
        ):
            self._base = base
            await self._on_base(base)
        return {key: entity for key, entity in found.items() if key not in base}

    async def require_pipeline(self) -> None:
        """Check that the switch runs the pipeline that entries are made for.

        Raises:
            SwitchAwayError: The connection is lost.
            SwitchRefusalError: It runs another one, or none.
        """
        async with self._own_errors():
            held = await held_config(self._switch)
        if held is None:
            raise SwitchRefusalError(NO_PROGRAM)
        if difference := self._program.difference_from(held.p4info):
            raise SwitchRefusalError(difference)

    async def read_counters(self, wanted: Sequence[CounterEntry]) -> list[CounterEntry]:
        """Read counters.

        Raises:
            SwitchAwayError: The connection is lost.
            SwitchRefusalError: The switch has no such counters.
        """
        # finsy declares the overloads of this asynchronous generator as coroutines.
        counters = cast("AsyncIterator[CounterEntry]", self._switch.read(wanted))
        async with self._own_errors():
            return [counter async for counter in counters]

    async def write(self, updates: Sequence[Update]) -> None:
        """Write all updates in one request."""
        messages = await self._worker.run(lambda: list(map(self._encoder.update, updates)), 10 * len(updates))
        if self._grant is not None:
            await self._grant.granted()
        async with self._own_errors():
            await self._switch.write(messages)

    @asynccontextmanager
    async def _own_errors(self, deadline_s: float | None = _DEADLINE_S) -> AsyncIterator[None]:
        """Translate errors of finsy and gRPC into those of Access; reconnect to a switch that is away."""
        try:
            async with asyncio.timeout(deadline_s):
                yield
        except P4ClientError as error:
            if error.code not in _AWAY:
                raise SwitchRefusalError(reason_of(error)) from error
            self._reconnect(reason_of(error))
            raise SwitchAwayError(reason_of(error)) from error
        except TimeoutError as error:
            reason = f"no answer within {deadline_s:g} s"
            self._reconnect(reason)
            raise SwitchAwayError(reason) from error
        except (AssertionError, UsageError) as error:
            # finsy and gRPC raise these when the connection is closed under a request.
            raise SwitchAwayError("the connection is closed") from error
        except UnreadableAnswerError as error:
            raise SwitchRefusalError(str(error)) from error
        except (DecodeError, LookupError, ValueError) as error:
            # finsy raises these where the details of a refusal contradict the request.
            raise SwitchRefusalError(f"its answer cannot be read: {reason_of(error)}") from error
        except asyncio.CancelledError as error:
            # gRPC raises this for a request already sent, though the task that waits for it was not cancelled.
            if (task := asyncio.current_task()) is None or task.cancelling():
                raise
            raise SwitchAwayError("the connection is closed") from error

    def _reconnect(self, reason: str) -> None:
        """End the stream and begin again: it may stand although requests fail."""

        async def fail() -> None:
            raise ConnectionLostError(reason)

        failing = fail()
        try:
            self._switch.create_task(failing)
        except AssertionError:
            failing.close()  # without a connection there is nothing to end
