"""A connection of the server, to a client or an executor: frames over asyncio."""

import asyncio
from collections.abc import Callable, Iterator

from runtime import messages
from runtime.addresses import watch_peer
from runtime.codec import MalformedError
from runtime.frames import Frame, FrameError, FrameReader, Kind, prefix


class Outbox:
    """The channels that have something to send: it leaves at the end of the loop's turn, all of it at once."""

    def __init__(self) -> None:
        self._channels: list[Channel] = []

    def add(self, channel: "Channel") -> None:
        """Let a channel send what it has, soon."""
        if not self._channels:
            asyncio.get_running_loop().call_soon(self._flush)
        self._channels.append(channel)

    def _flush(self) -> None:
        channels, self._channels = self._channels, []
        for each in channels:
            each.flush()


class Channel(asyncio.BufferedProtocol):
    """Hands every frame to ``on_frame``, and itself to ``on_close`` when the connection has ended.

    What is sent leaves at the end of the loop's turn: frames for one peer by one system call, which wakes it up once.
    Whatever ``on_frame`` raises as ValueError is told to the peer, whose connection then ends: it broke the protocol.
    """

    def __init__(
        self, outbox: Outbox, on_frame: Callable[["Channel", Frame], None], on_close: Callable[["Channel"], None]
    ) -> None:
        self._outbox = outbox
        self.on_frame = on_frame
        self.on_close = on_close
        self.reader = FrameReader()
        self._transport: asyncio.Transport | None = None
        self._unsent: list[bytes | bytearray | memoryview] = []
        self._paused_frames: list[Frame] | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Take the connection."""
        assert isinstance(transport, asyncio.Transport)
        watch_peer(transport.get_extra_info("socket"))
        self._transport = transport

    def connection_lost(self, _: Exception | None) -> None:
        """Tell that it has ended."""
        self._transport = None
        self.on_close(self)

    def get_buffer(self, _: int) -> memoryview:
        """Return memory to receive into."""
        return self.reader.memory()

    def buffer_updated(self, nbytes: int) -> None:
        """Take what was received."""
        try:
            self._take(self.reader.received(nbytes))
        except FrameError as error:
            self.refuse(str(error))

    def pause(self) -> None:
        """Take no more frames until ``resume``; the peer notices only that answers take longer."""
        if self._transport is not None and self._paused_frames is None:
            self._paused_frames = []
            self._transport.pause_reading()

    def resume(self) -> None:
        """Take frames again, first those that had come already."""
        frames, self._paused_frames = self._paused_frames, None
        if self._transport is not None and frames is not None:
            self._take(iter(frames))
            if self._paused_frames is None and not self._transport.is_closing():
                self._transport.resume_reading()

    def _take(self, frames: Iterator[Frame]) -> None:
        try:
            for frame in frames:
                if self._transport is None or self._transport.is_closing():
                    return
                if self._paused_frames is not None:
                    self._paused_frames.append(frame)
                else:
                    self.on_frame(self, frame)
        except MalformedError as error:
            self.refuse(str(error))

    def send(self, message: object, payload: bytes | bytearray | memoryview = b"") -> None:
        """Send a message; to a connection that has ended it goes nowhere."""
        self.send_frame(Kind.MESSAGE, messages.encode(message), payload)

    def send_frame(self, kind: int, header: bytes, payload: bytes | bytearray | memoryview = b"") -> None:
        """Send a frame."""
        self.write(prefix(kind, header, len(payload)))
        if payload:
            self.write(payload)

    def write(self, data: bytes | bytearray | memoryview) -> None:
        """Send a frame, or the next part of one."""
        if not self._unsent:
            self._outbox.add(self)
        self._unsent.append(data)

    def flush(self) -> None:
        """Send what was written, by one system call, which wakes the peer up once."""
        unsent, self._unsent = self._unsent, []
        if self._transport is not None and unsent:
            self._transport.write(unsent[0] if len(unsent) == 1 else b"".join(unsent))

    def refuse(self, message: str) -> None:
        """Say why the connection ends, and end it."""
        self.send(messages.Refused(None, message))
        self.close()

    def close(self) -> None:
        """End the connection once everything is sent."""
        if self._transport is not None:
            self.flush()
            self._transport.close()

    def abort(self) -> None:
        """End the connection to a peer that may not answer any more."""
        if self._transport is not None:
            self._transport.abort()
