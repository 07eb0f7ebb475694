"""StreamChannel: one controller's session with one device (P4Runtime specification, sections 5 and 16)."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from typing import Any

import grpc
from finsy.proto import U128, p4r

from emulator.p4runtime.device import Device
from emulator.p4runtime.errors import (
    RequestError,
    failed_precondition,
    invalid_argument,
    not_found,
    permission_denied,
    resource_exhausted,
    unimplemented,
)

_LAST_WORDS_S = 1.0
_FIRST_BID_S = 10.0
"""A stream that belongs to no device after so long is ended."""
MAX_WAITING = 1_000
"""Messages that wait for a slow client. A stream with more is ended; packets and news of idle entries are dropped."""
_DROPPABLE = frozenset({"packet", "idle_timeout_notification"})

Write = Callable[[p4r.StreamMessageResponse], Awaitable[None]]


class StreamSession:
    """One stream; it belongs to the device of its first bid.

    ``stream`` is its number; ``exclusive`` is held while a packet is sent to a switch.
    """

    def __init__(self, stream: int, devices: Mapping[int, Device], exclusive: asyncio.Lock) -> None:
        self._stream = stream
        self._exclusive = exclusive
        self._devices = devices
        self._device: Device | None = None
        self._loop = asyncio.get_running_loop()
        self._ending: asyncio.Future[RequestError] = self._loop.create_future()
        self._stop_listening: Callable[[], None] = lambda: None
        self._outbox: asyncio.Queue[p4r.StreamMessageResponse | None] = asyncio.Queue()

    async def run(self, requests: AsyncIterator[p4r.StreamMessageRequest], write: Write) -> None:
        """Serve the stream until the client ends it.

        Raises RequestError if the server must end it: UNAVAILABLE if the switch goes down, DEADLINE_EXCEEDED without a
        bid in time, RESOURCE_EXHAUSTED if the client does not take what it is told.
        """
        writer = asyncio.create_task(self._drain(write))
        reader = asyncio.create_task(self._read(requests))
        overdue = self._loop.call_later(_FIRST_BID_S, self._end_without_bid)
        try:
            waiting: set[asyncio.Future[Any]] = {reader, self._ending}
            await asyncio.wait(waiting, return_when=asyncio.FIRST_COMPLETED)
            if self._ending.done():
                raise self._ending.result()
            await reader
        finally:
            reader.cancel()
            overdue.cancel()
            self._stop_listening()
            if self._device is not None:
                self._device.clients.leave(self._stream)
            # The call cannot end while a message is being written.
            self._outbox.put_nowait(None)
            await asyncio.wait({writer}, timeout=_LAST_WORDS_S)
            writer.cancel()
            await asyncio.gather(writer, return_exceptions=True)

    async def _read(self, requests: AsyncIterator[p4r.StreamMessageRequest]) -> None:
        async for request in requests:
            await self._receive(request)

    async def _drain(self, write: Write) -> None:
        while (message := await self._outbox.get()) is not None:
            await write(message)

    async def _receive(self, request: p4r.StreamMessageRequest) -> None:
        match request.WhichOneof("update"):
            case "arbitration":
                self._bid(request.arbitration)
            case "packet":
                await self._packet_out(request.packet)
            case "digest_ack":
                self._acknowledge(request.digest_ack)
            case None:
                reason = invalid_argument("the type of the stream message is not set")
                self._report(reason, p4r.StreamError(other=p4r.StreamOtherError()))
            case other:
                reason = unimplemented(f"a stream message of type {other} is not supported")
                self._report(reason, p4r.StreamError(other=p4r.StreamOtherError()))

    def _bid(self, update: p4r.MasterArbitrationUpdate) -> None:
        device = self._devices.get(update.device_id)
        if self._device is not None and device is not self._device:
            raise failed_precondition(f"the stream belongs to device {self._device.switch.device_id}")
        if device is None:
            raise not_found(f"there is no device {update.device_id}")
        device.require_power()
        election_id = U128.decode(update.election_id) if update.HasField("election_id") else None
        device.clients.bid(self._stream, update.role, election_id, self._send)
        if self._device is None:
            self._device = device
            self._stop_listening = device.switch.power.listen(self._note_power_lost)

    def _note_power_lost(self) -> None:
        # A switch may go down in another thread, which advances the fabric's time.
        error = RequestError(grpc.StatusCode.UNAVAILABLE, "the switch has gone down")
        self._loop.call_soon_threadsafe(self._end, error)

    def _end_without_bid(self) -> None:
        if self._device is None:
            self._end(RequestError(grpc.StatusCode.DEADLINE_EXCEEDED, f"no bid within {_FIRST_BID_S:g} s"))

    def _end(self, error: RequestError) -> None:
        if not self._ending.done():
            self._ending.set_result(error)

    def _send(self, message: p4r.StreamMessageResponse) -> None:
        if self._outbox.qsize() < MAX_WAITING:
            self._outbox.put_nowait(message)
        elif message.WhichOneof("update") not in _DROPPABLE:
            self._end(resource_exhausted(f"{MAX_WAITING:,} messages wait for the client"))

    async def _packet_out(self, message: p4r.PacketOut) -> None:
        try:
            if self._device is None:
                raise permission_denied("a PacketOut needs a bid for a device before it")
            async with self._exclusive:
                self._device.packet_out(self._stream, message)
        except RequestError as reason:
            self._report(reason, p4r.StreamError(packet_out=p4r.PacketOutError(packet_out=message)))

    def _acknowledge(self, message: p4r.DigestListAck) -> None:
        try:
            if self._device is None:
                raise permission_denied("a DigestListAck needs a bid for a device before it")
            self._device.acknowledge(self._stream, message)
        except RequestError as reason:
            error = p4r.DigestListAckError(digest_list_ack=message)
            self._report(reason, p4r.StreamError(digest_list_ack=error))

    def _report(self, reason: RequestError, error: p4r.StreamError) -> None:
        error.canonical_code = reason.code.value[0]
        error.message = str(reason)
        self._send(p4r.StreamMessageResponse(error=error))
