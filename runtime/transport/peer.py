"""One other process of the runtime: messages to it, tuples to and from it."""

import contextlib
import logging
import queue
import select
import socket
import threading
from collections.abc import Callable
from typing import Protocol

from runtime.transport.bulk import BulkStream, Transfer
from runtime.transport.errors import FrameError, PeerLostError, TransportError, WithdrawnError
from runtime.transport.framing import (
    EAGER_BYTES,
    MOST_MESSAGE_BYTES,
    NO_TAG,
    Frame,
    Kind,
    Place,
    Tag,
    header,
    packed_place,
    place_of,
)
from runtime.transport.rendezvous import Ended, Expectation, Offer, Rendezvous, end
from runtime.transport.shared_memory import Segment
from runtime.transport.tcp import MessageStream

_LOG = logging.getLogger(__name__)


class Receiver(Protocol):
    """What an endpoint tells its process, in the endpoint's thread.

    Nothing here may wait for another tuple or message.
    """

    def connected(self, peer: "Peer", /) -> None:
        """Take note of a new peer that has connected, before anything comes from it."""

    def message(self, peer: "Peer", payload: memoryview, /) -> None:
        """Handle a message; ``payload`` is valid until this returns. What it raises ends the connection."""

    def handed_over(self, peer: "Peer", tag: Tag, memory: memoryview, /) -> None:
        """Take a tuple to be read where it is, in the memory of a peer on this host."""

    def lost(self, peer: "Peer", cause: TransportError, /) -> None:
        """Take note that a peer is gone; all tuples from it and to it have ended before."""


class Peer:
    """A process that this one is connected to. Its methods may be called from any thread.

    They raise PeerLostError once it is gone. Memory that a tuple is sent from or received into must stay until
    ``ended`` is called, which happens exactly once, in whatever thread: with None, or with why it never will arrive.
    """

    def __init__(
        self,
        name: str,
        link: bytes,
        stream: MessageStream,
        receiver: Receiver,
        *,
        is_endpoint_thread: Callable[[], bool],
        post: Callable[[Callable[[], None]], None],
        forget: Callable[["Peer"], None],
    ) -> None:
        self.name = name
        self.link = link
        self.stream = stream
        self._receiver = receiver
        self._is_endpoint_thread, self._post, self._forget = is_endpoint_thread, post, forget
        self._lock = threading.Lock()
        self._rendezvous = Rendezvous()
        self._transfers: queue.SimpleQueue[Transfer | None] = queue.SimpleQueue()
        self._bulk: BulkStream | None = None
        self._announced: set[int] = set()
        self._segments: dict[int, Segment] = {}
        self._cause: PeerLostError | None = None

    def __repr__(self) -> str:
        return f"Peer({self.name!r})"

    @property
    def is_lost(self) -> bool:
        """Whether it is gone."""
        return self._cause is not None

    def send(self, message: bytes) -> None:
        """Send a message at once. Raises ValueError if it is larger than ``MOST_MESSAGE_BYTES``."""
        if len(message) > MOST_MESSAGE_BYTES:
            raise ValueError(f"a message of {len(message)} bytes, more than {MOST_MESSAGE_BYTES}")
        self._send(Kind.MESSAGE, NO_TAG, message)

    def send_tuple(self, tag: Tag, payload: memoryview, ended: Ended) -> None:
        """Send a tuple to whoever expects it there: a small one at once, a larger one once its place is known.

        Raises ValueError for a tag that is offered already and for the wrong size, WithdrawnError if its execution was
        withdrawn; ``ended`` is not called then.
        """
        if len(payload) <= EAGER_BYTES:
            with self._lock:
                self._rendezvous.check_offered(tag)
            self._send(Kind.TUPLE, tag, payload)
            end((ended,), None)
            return
        offer = Offer(payload, ended)
        with self._lock:
            self._check_here()
            place = self._rendezvous.offer(tag, offer)
            if place is not None:
                self._transfer(tag, offer, place)

    def expect(
        self, tag: Tag, memory: memoryview, ended: Ended, *, segment: Segment | None = None, offset_bytes: int = 0
    ) -> None:
        """Expect a tuple in ``memory``, which is the part of ``segment`` at an offset where one is given.

        On one host the peer writes straight into a segment. Raises ValueError if the tag is expected already, and
        WithdrawnError if its execution was withdrawn; ``ended`` is not called then.
        """
        passes = segment is not None and self.stream.passes_descriptors and not segment.is_read_only
        expectation = Expectation(memory, ended, segment if passes else None, offset_bytes)
        with self._lock:
            self._check_here()
            early = self._rendezvous.expect(tag, expectation)
        if early is not None:
            memory[:] = early
            end((ended,), None)
        elif len(memory) > EAGER_BYTES:
            with contextlib.suppress(PeerLostError):  # it ends the expectation
                if expectation.segment is not None:
                    self._announce(expectation.segment)
                self._send(Kind.READY, tag, packed_place(expectation.place), may_wait=False)

    def hand_over(self, tag: Tag, segment: Segment, offset_bytes: int, size_bytes: int) -> None:
        """Let the peer, which must be on this host, read a tuple where it is. The memory must stay while it does.

        Raises ValueError if the peer is connected by TCP, and FrameError for what is not inside the segment.
        """
        if not self.stream.passes_descriptors:
            raise ValueError(f"{self.name} is connected by TCP; memory is shared on one host alone")
        segment.part(offset_bytes, size_bytes)
        self._announce(segment)
        self._send(Kind.HANDOVER, tag, packed_place(Place(segment.number, offset_bytes, size_bytes)))

    def withdraw(self, execution: int) -> None:
        """Want nothing more of an execution, and send nothing more of it.

        On either side its offers end with WithdrawnError, and its expectations once nobody can write into them any
        more. Does nothing if the peer is gone, as everything has ended then.
        """
        with self._lock:
            if self._cause is not None:
                return
            ended = self._rendezvous.withdraw(execution)
        end(ended, WithdrawnError(f"execution {execution} was withdrawn"))
        with contextlib.suppress(PeerLostError):
            self._send(Kind.WITHDRAW, Tag(execution, 0, 0, 0), may_wait=False)

    def close(self) -> None:
        """End the connection; what is under way ends as if the peer were gone."""
        self._post(lambda: self.lose(PeerLostError("this process closed the connection")))

    def attach_bulk(self, connection: socket.socket) -> None:
        """Take over the connection for bulk, which comes after the one for messages."""
        with self._lock:
            if self._cause is not None or self._bulk is not None:
                connection.close()
                return
            self._bulk = BulkStream(
                connection,
                place_of=self._granted,
                arrived=self._bulk_arrived,
                failed=lambda error: self._post(lambda: self.lose(error)),
                transfers=self._transfers,
                name=self.name,
            )

    def ready(self, events: int) -> None:
        """Receive and send what is possible, after epoll's ``events``. In the endpoint's thread."""
        try:
            if events & select.EPOLLOUT:
                self.stream.flush()
            if events & ~select.EPOLLOUT:
                for frame in self.stream.received():
                    self._handle(frame)
        except (EOFError, OSError, TransportError) as error:
            self.lose(error)
        except Exception as error:
            _LOG.exception("what came from %s could not be handled", self.name)
            self.lose(error)

    def lose(self, cause: Exception) -> None:
        """End everything that concerns this peer, once. In the endpoint's thread."""
        with self._lock:
            if self._cause is not None:
                return
            lost = self._cause = PeerLostError(f"{self.name} is lost: {cause}")
        self._forget(self)
        self.stream.close()
        if self._bulk is not None:
            self._bulk.close()
        with self._lock:
            ended = self._rendezvous.lose()
        while not self._transfers.empty():
            transfer = self._transfers.get()
            if transfer is not None and transfer.ended is not None:
                ended.append(transfer.ended)
        end(ended, lost)
        self._segments.clear()
        self._receiver.lost(self, lost)

    def _handle(self, frame: Frame) -> None:
        kind, tag, payload = frame
        if kind is Kind.MESSAGE:
            self._receiver.message(self, payload)
        elif kind is Kind.TUPLE:
            with self._lock:
                expectation = self._rendezvous.arrived(tag, payload)
            if expectation is not None:
                expectation.memory[:] = payload
                end((expectation.ended,), None)
        elif kind is Kind.READY:
            place = place_of(payload)
            if place.segment and self._part(place).readonly:
                raise FrameError(f"{tag}: a place in segment {place.segment}, which is read-only")
            with self._lock:
                offer = self._rendezvous.grant(tag, place)
                if offer is not None:
                    self._transfer(tag, offer, place)
        elif kind is Kind.WITHDRAW:
            with self._lock:
                ended = self._rendezvous.peer_withdraws(tag.execution)
                self._transfers.put(Transfer(Kind.WITHDRAWN, tag))
                withdraws_too = self._rendezvous.withdraws_too(tag.execution)
            end(ended, WithdrawnError(f"execution {tag.execution} was withdrawn by {self.name}"))
            if withdraws_too:
                self._send(Kind.WITHDRAW, tag)
        elif kind is Kind.SEGMENT:
            place = place_of(payload)
            descriptor = self.stream.passed_descriptor()
            self._segments[place.segment] = Segment.attach(place.segment, descriptor, place.size_bytes)
        else:
            assert kind is Kind.HANDOVER
            self._receiver.handed_over(self, tag, self._part(place_of(payload)).toreadonly())

    def _granted(self, tag: Tag, size_bytes: int) -> memoryview:
        with self._lock:
            return self._rendezvous.granted(tag, size_bytes).memory

    def _bulk_arrived(self, kind: Kind, tag: Tag) -> None:
        with self._lock:
            if kind is Kind.WITHDRAWN:
                ended = self._rendezvous.withdrawn(tag.execution)
            else:
                expectation = self._rendezvous.placed(tag) if kind is Kind.PLACED else self._rendezvous.received(tag)
        if kind is Kind.WITHDRAWN:
            end(ended, WithdrawnError(f"execution {tag.execution} was withdrawn"))
        else:
            end((expectation.ended,), None)

    def _transfer(self, tag: Tag, offer: Offer, place: Place) -> None:
        """Hand a tuple to the thread that sends bulk. The lock is held."""
        destination = self._part(place) if place.segment else None
        if destination is None:
            self._transfers.put(Transfer(Kind.TUPLE, tag, offer.payload, ended=offer.ended))
        else:
            self._transfers.put(Transfer(Kind.PLACED, tag, offer.payload, destination, offer.ended))

    def _part(self, place: Place) -> memoryview:
        segment = self._segments.get(place.segment)
        if segment is None:
            raise FrameError(f"segment {place.segment}, which {self.name} has not sent")
        return segment.part(place.offset_bytes, place.size_bytes)

    def _announce(self, segment: Segment) -> None:
        """Send a segment before its first use."""
        with self._lock:
            if segment.number not in self._announced:
                frame = packed_place(Place(segment.number, 0, len(segment.view)))
                self.stream.send(header(Kind.SEGMENT, NO_TAG, len(frame)) + frame, segment, may_wait=False)
                self._announced.add(segment.number)

    def _send(self, kind: Kind, tag: Tag, payload: bytes | memoryview = b"", *, may_wait: bool = True) -> None:
        frame = b"".join((header(kind, tag, len(payload)), payload))
        try:
            self.stream.send(frame, may_wait=may_wait and not self._is_endpoint_thread())
        except PeerLostError:
            raise self._cause or PeerLostError(f"{self.name} is lost") from None

    def _check_here(self) -> None:
        if self._cause is not None:
            raise self._cause
