"""The gRPC server of a controller: its address, its TLS, and the limits of its connections."""

import resource
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager, nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import Self

import grpc.aio

from controller.access.server_tls import server_credentials
from controller.api.rate_limiter import MAX_STREAMS_PER_CONNECTION
from controller.config import ControllerConfig
from controller.process.unix_socket import owned_socket
from hostlib.addresses import socket_path
from hostlib.messages import MAX_MESSAGE_BYTES

_MOST_FILES = 65_536
_CONNECTIONS_SHARE = 0.5
"""The share of the files that a process may open that clients' connections may take."""

SERVER_OPTIONS = (
    # Otherwise a second controller could listen on the same port.
    ("grpc.so_reuseport", 0),
    ("grpc.max_receive_message_length", MAX_MESSAGE_BYTES),
    ("grpc.max_concurrent_streams", MAX_STREAMS_PER_CONNECTION),
    # Otherwise a fast connection may send some megabytes of every request before anybody asks for them.
    ("grpc.http2.bdp_probe", 0),
    # A connection that says nothing is closed, and so is one without calls.
    ("grpc.server_handshake_timeout_ms", 10_000),
    ("grpc.max_connection_idle_ms", 300_000),
    # A host that has lost its power is found out.
    ("grpc.keepalive_time_ms", 60_000),
    ("grpc.keepalive_timeout_ms", 20_000),
)
_STOP_GRACE_S = 1.0


@dataclass(slots=True)
class Server:
    """A gRPC server that is bound to an address."""

    server: grpc.aio.Server
    address: str
    has_served: bool = False

    @classmethod
    @asynccontextmanager
    async def bound(cls, config: ControllerConfig) -> AsyncIterator[Self]:
        """Have a server bound to the configured address while the context lasts; the system chooses a port for 0.

        Raises:
            OSError: The address cannot be bound.
            UnusableFileError: The files of TLS cannot be used.
        """
        path = socket_path(config.listen)
        with nullcontext() if path is None else owned_socket(Path(path)):
            bound = cls._bind(config)
        try:
            yield bound
        finally:
            # gRPC removes the file of a socket at which it has served.
            if path is not None and not bound.has_served:
                Path(path).unlink(missing_ok=True)

    @classmethod
    def _bind(cls, config: ControllerConfig) -> Self:
        # A connection beyond this number is closed at once, so that files are left for the database and for switches.
        most = ("grpc.max_allowed_incoming_connections", int(_CONNECTIONS_SHARE * _raise_file_limit()))
        server = grpc.aio.server(options=(*SERVER_OPTIONS, most))
        address = config.listen
        try:
            if config.tls is None:
                port = server.add_insecure_port(address)
            else:
                port = server.add_secure_port(address, server_credentials(config.tls))
        except RuntimeError as error:
            raise OSError(f"cannot listen on {address}") from error
        return cls(server, address if socket_path(address) else f"{address.rpartition(':')[0]}:{port}")

    @asynccontextmanager
    async def serving(self, handlers: Sequence[grpc.GenericRpcHandler]) -> AsyncIterator[None]:
        """Answer calls with these handlers while the context lasts."""
        self.server.add_generic_rpc_handlers(handlers)
        await self.server.start()
        self.has_served = True
        print(f"listening on {self.address}", flush=True)
        try:
            yield
        finally:
            await self.server.stop(_STOP_GRACE_S)


def _raise_file_limit() -> int:
    """Let this process open as many files as the system allows it, up to a bound; returns how many."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    most = _MOST_FILES if hard == resource.RLIM_INFINITY else min(hard, _MOST_FILES)
    if soft < most:
        resource.setrlimit(resource.RLIMIT_NOFILE, (most, hard))
        return most
    return soft
