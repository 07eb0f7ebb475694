"""The HTTP server of a controller: its address, its TLS, and the limits of its connections."""

import asyncio
import logging
import socket
import ssl
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from functools import partial
from typing import Any

import h11
import uvicorn
from uvicorn.protocols.http.h11_impl import H11Protocol

from controller.access.bound_socket import bound_socket
from controller.access.reloading_file import ReloadingFiles
from controller.access.tls_files import ServerTls, check_tls
from controller.web.seats import Seats

_LOG = logging.getLogger(__name__)

_MOST_HEADER_BYTES = 32 * 1024
_FIRST_REQUEST_LIMIT_S = 10.0
"""How long a connection may be open without a whole request, and how long its TLS handshake may take."""
_IDLE_LIMIT_S = 30
"""How long a connection stays open between requests."""
_HELD_UP_LIMIT_S = 30.0
"""How long a client may hold its connection up, after the first request; at most twice as long."""
_STOP_GRACE_S = 1


class _Protocol(H11Protocol):
    """A connection that is closed where its client holds it up: it sends no whole request, or does not read.

    It tells the application the client's certificate, how to end the connection at once, and how to say whose it is.
    """

    def __init__(self, seats: Seats, *arguments: Any) -> None:
        super().__init__(*arguments)
        self._seats = seats

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        certificate = _client_certificate(transport)
        told = {
            "client_certificate": certificate,
            "abort": transport.abort,
            "know": partial(self._seats.know, self),
        }
        self.app_state = {**self.app_state, **told}
        self._num_resumed = 0
        self._held_up_by: object = self._waits_for()
        self._looking = self.loop.call_later(_FIRST_REQUEST_LIMIT_S, self._close_if_held_up)
        self._seats.seat(self, self.client[0] if self.client else "", certificate)

    def connection_lost(self, exc: Exception | None) -> None:
        self._looking.cancel()
        self._seats.leave(self)
        super().connection_lost(exc)

    def resume_writing(self) -> None:
        self._num_resumed += 1
        super().resume_writing()

    def _close_if_held_up(self) -> None:
        """Close the connection where it waits for what it waited for the last time."""
        held_up_by, self._held_up_by = self._held_up_by, self._waits_for()
        if held_up_by == self._held_up_by is not None:
            self.transport.abort()
        else:
            self._looking = self.loop.call_later(_HELD_UP_LIMIT_S, self._close_if_held_up)

    def _waits_for(self) -> object:
        """What the client has to do next; None: nothing, since the controller answers."""
        if self.cycle is None or self.cycle.response_complete:
            return "request", self.cycle
        if self.flow.write_paused:
            return "read", self.cycle, self._num_resumed
        return ("body", self.cycle) if self.conn.their_state is h11.SEND_BODY else None

    @property
    def waits_for_client(self) -> bool:
        """See Seated."""
        return self._waits_for() is not None

    def close_at_once(self) -> None:
        """See Seated."""
        self.transport.abort()


class _Server(uvicorn.Server):
    """A server that leaves signals to the process, and bounds TLS handshakes."""

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        yield

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        protocol = partial(_Protocol, Seats(), self.config, self.server_state, {})
        limit_s = None if self.config.ssl is None else _FIRST_REQUEST_LIMIT_S
        create = partial(asyncio.get_running_loop().create_server, ssl=self.config.ssl, ssl_handshake_timeout=limit_s)
        self.servers = [await create(protocol, sock=each) for each in sockets or ()]
        self.started = True


@asynccontextmanager
async def serving(address: str, tls: ServerTls | None, application: Any) -> AsyncIterator[str]:
    """Serve an ASGI application at HOST:PORT while the context lasts; gives the URL, with the port that port 0 became.

    Where ``tls`` names an authority, clients may show certificates that it has signed; browsers mostly have none.

    Raises:
        OSError: The address cannot be bound.
    """
    with bound_socket(address, "web") as listener:
        config = uvicorn.Config(
            application,
            http=_Protocol,
            ws="none",
            loop="none",
            lifespan="off",
            log_config=None,
            access_log=False,
            server_header=False,
            h11_max_incomplete_event_size=_MOST_HEADER_BYTES,
            timeout_keep_alive=_IDLE_LIMIT_S,
            timeout_graceful_shutdown=_STOP_GRACE_S,
        )
        config.load()
        config.ssl = None if tls is None else _tls_context(tls)
        # Its lines quote what clients send, and there is one for every request that cannot be read.
        logging.getLogger("uvicorn").setLevel(logging.CRITICAL)
        server = _Server(config)
        running = asyncio.create_task(server.serve([listener]))
        host, port = address.rpartition(":")[0], listener.getsockname()[1]
        try:
            yield f"{'http' if tls is None else 'https'}://{host}:{port}"
        finally:
            server.should_exit = True
            await running


def _tls_context(tls: ServerTls) -> ssl.SSLContext:
    """A context whose handshakes use the files as they are by then. Raises UnusableFileError."""
    paths = [tls.certificate, tls.key, *([] if tls.ca is None else [tls.ca])]
    files = ReloadingFiles(paths, partial(_context_of_files, tls))

    def use_newest(connection: ssl.SSLObject | ssl.SSLSocket, _name: str | None, _context: ssl.SSLContext) -> None:
        connection.context = files.content

    # Called at every handshake, whether the client names a server or not.
    context = _context_of_files(tls, *(path.read_bytes() for path in paths))
    context.sni_callback = use_newest
    return context


def _context_of_files(tls: ServerTls, certificate: bytes, key: bytes, ca: bytes | None = None) -> ssl.SSLContext:
    """The context of files with these contents, which it reads again. Raises ValueError."""
    check_tls(certificate, key, ca)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    try:
        context.load_cert_chain(tls.certificate, tls.key)
        if ca is not None:
            context.load_verify_locations(cadata=ca.decode())
            context.verify_mode = ssl.CERT_OPTIONAL
    except OSError as error:
        raise ValueError(f"cannot be used: {error}") from error
    return context


def _client_certificate(transport: asyncio.BaseTransport) -> str | None:
    """The client's certificate (PEM), which TLS has verified; None where it has shown none."""
    connection: ssl.SSLObject | None = transport.get_extra_info("ssl_object")
    octets = None if connection is None else connection.getpeercert(binary_form=True)
    return None if octets is None else ssl.DER_cert_to_PEM_cert(octets)
