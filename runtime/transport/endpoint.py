"""What a process of the runtime has: the peers it is connected to, and the thread in which it hears from them."""

import contextlib
import logging
import os
import secrets
import select
import socket
import threading
import time
from collections import deque
from collections.abc import Callable
from typing import ParamSpec, Self

from runtime.transport import handshake, tcp
from runtime.transport.errors import HandshakeError, PeerLostError
from runtime.transport.handshake import Introduction, Purpose, Tokens
from runtime.transport.peer import Peer, Receiver

_LOG = logging.getLogger(__name__)
Arguments = ParamSpec("Arguments")
_LINK_BYTES = 16
_MOST_HANDSHAKES = 32
"""As many strangers may stand at the door; more are turned away."""


_SPIN_S = 50e-6
_BUSY_S = 150e-6


class Endpoint:
    """One end of all connections of a process. A context manager, which closes it.

    ``start`` gives it a thread of its own. A process with an event loop rather waits until ``fileno()`` is readable and
    calls ``poll(0)``; its thread is then the endpoint's thread. ``tokens`` says by which token whoever connects is
    known.
    """

    def __init__(self, name: str, receiver: Receiver, tokens: Tokens = lambda _: None) -> None:
        self.name = handshake.check_name(name)
        self._receiver = receiver
        self._tokens = tokens
        self._watched = select.epoll()
        self._sources: dict[int, Callable[[int], None]] = {}
        self._peers: dict[bytes, Peer] = {}
        self._listeners: list[socket.socket] = []
        self._posted: deque[Callable[[], None]] = deque()
        self._wake = os.eventfd(0, os.EFD_CLOEXEC | os.EFD_NONBLOCK)
        self._watched.register(self._wake, select.EPOLLIN)
        self._sources[self._wake] = self._run_posted
        self._door = threading.Semaphore(_MOST_HANDSHAKES)
        self._thread: threading.Thread | None = None
        self._thread_number: int | None = None
        self._is_busy = False
        self._is_closing = False
        self._posting = threading.Lock()
        self._is_closed = False

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def start(self) -> None:
        """Hear from peers in a thread of its own."""
        self._thread = threading.Thread(target=self._run, name=f"transport of {self.name}", daemon=True)
        self._thread.start()

    def fileno(self) -> int:
        """Return what is readable when there is something to ``poll``."""
        return self._watched.fileno()

    def poll(self, timeout_s: float | None = None) -> None:
        """Handle what has come, or what comes first within ``timeout_s`` (None: whenever)."""
        self._thread_number = threading.get_ident()
        for descriptor, events in self._watched.poll(0) if timeout_s == 0 else self._wait(timeout_s):
            source = self._sources.get(descriptor)
            if source is not None:
                self._call(source, events)

    def listen(self, address: str) -> str:
        """Let processes connect at HOST:PORT (port 0: any free one), unix:/PATH or unix:@NAME; return the address.

        Raises OSError if it is taken, and ValueError for what is no address.
        """
        listener, bound = tcp.listen(address)
        listener.setblocking(False)
        self._listeners.append(listener)
        self._sources[listener.fileno()] = lambda _: self._accept(listener)
        self._watched.register(listener, select.EPOLLIN)
        return bound

    def connect(self, address: str, token: bytes, timeout_s: float = handshake.HANDSHAKE_S) -> Peer:
        """Connect to a process and return it. Blocks. What it sends may be told before this returns.

        Raises OSError if nobody listens there, HandshakeError if either end does not know the token.
        """
        link = secrets.token_bytes(_LINK_BYTES)
        messages, name = self._introduced(address, Introduction(self.name, Purpose.MESSAGES, link), token, timeout_s)
        try:
            bulk, _ = self._introduced(address, Introduction(self.name, Purpose.BULK, link), token, timeout_s)
        except BaseException:
            messages.close()
            raise
        peer = self._add(name, link, messages)
        peer.attach_bulk(bulk)
        return peer

    def close(self) -> None:
        """End all connections, and the thread, in which it may not be called. Does nothing if it is closed."""
        if self._thread is not None:
            self._post(self._stop)
            self._thread.join()
        else:
            self._stop()
        with self._posting:
            if self._is_closed:
                return
            self._is_closed = True
        self._run_posted(0)
        self._watched.close()
        os.close(self._wake)

    def _wait(self, timeout_s: float | None) -> list[tuple[int, int]]:
        """Return what has come, or what comes first.

        Waking an idle processor takes several times as long as a hop. So while the last waits were short, look again
        and again before sleeping, and yield the processor to whoever else wants it.
        """
        begin_s = time.perf_counter()
        if self._is_busy:
            while time.perf_counter() - begin_s < _SPIN_S:
                events = self._watched.poll(0)
                if events:
                    return events
                os.sched_yield()
        events = self._watched.poll(timeout_s)
        self._is_busy = time.perf_counter() - begin_s < _BUSY_S
        return events

    def _run(self) -> None:
        while not self._is_closing:
            self.poll()

    def _stop(self) -> None:
        self._is_closing = True
        while self._listeners:
            listener = self._listeners.pop()
            self._watched.unregister(listener)
            listener.close()
        for peer in list(self._peers.values()):
            peer.lose(PeerLostError("this process closed its endpoint"))

    def _post(self, call: Callable[[], None]) -> None:
        """Have something called in the endpoint's thread; nothing once it is closed."""
        with self._posting:
            if not self._is_closed:
                self._posted.append(call)
                os.eventfd_write(self._wake, 1)

    def _run_posted(self, _: int) -> None:
        with contextlib.suppress(BlockingIOError):
            os.eventfd_read(self._wake)
        while self._posted:
            self._call(self._posted.popleft())

    def _call(self, call: Callable[Arguments, None], *arguments: Arguments.args, **named: Arguments.kwargs) -> None:
        """Call what may run the receiver's code, whose mistakes concern no other peer."""
        try:
            call(*arguments, **named)
        except Exception:
            _LOG.exception("the receiver of %s failed", self.name)

    def _introduced(
        self, address: str, introduction: Introduction, token: bytes, timeout_s: float
    ) -> tuple[socket.socket, str]:
        connection = tcp.connect(address, timeout_s)
        try:
            return connection, handshake.introduce(connection, introduction, token)
        except BaseException:
            connection.close()
            raise

    def _accept(self, listener: socket.socket) -> None:
        try:
            connection, _ = listener.accept()
        except OSError:
            return  # it has gone again
        if not self._door.acquire(blocking=False):
            connection.close()
            return
        threading.Thread(target=self._admit, args=(connection,), name="handshake", daemon=True).start()

    def _admit(self, connection: socket.socket) -> None:
        try:
            introduction, admission = handshake.examine(connection, self.name, self._tokens)
            self._post(lambda: self._admit_introduced(connection, introduction, admission))
        except HandshakeError as error:
            _LOG.warning("%s", error)
            connection.close()
        finally:
            self._door.release()

    def _admit_introduced(self, connection: socket.socket, introduction: Introduction, admission: bytes) -> None:
        name, link = introduction.name, introduction.link
        known = self._peers.get(link)
        try:
            connection.sendall(admission)
        except OSError:
            connection.close()
            return
        if self._is_closing:
            connection.close()
        elif introduction.purpose is Purpose.MESSAGES and known is None:
            self._receiver.connected(self._add(name, link, connection))
        elif introduction.purpose is Purpose.BULK and known is not None and known.name == name:
            known.attach_bulk(connection)
        else:
            _LOG.warning("%s opened a connection that fits no other", name)
            connection.close()

    def _add(self, name: str, link: bytes, connection: socket.socket) -> Peer:
        peer = Peer(
            name,
            link,
            tcp.MessageStream(connection),
            self._receiver,
            is_endpoint_thread=lambda: threading.get_ident() == self._thread_number,
            post=self._post,
            forget=self._forget,
        )
        self._peers[link] = peer
        self._sources[peer.stream.descriptor] = peer.ready
        peer.stream.watch(self._watched)
        return peer

    def _forget(self, peer: Peer) -> None:
        self._peers.pop(peer.link, None)
        self._sources.pop(peer.stream.descriptor, None)
