"""Serving P4Runtime on an address."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import grpc
from finsy.proto import p4r_grpc

from emulator.p4runtime.service import P4RuntimeService

MAX_REQUEST_BYTES = 16 * 1024 * 1024


@asynccontextmanager
async def serve(service: P4RuntimeService, address: str = "127.0.0.1:0") -> AsyncIterator[int]:
    """Serve until the block ends; gives the TCP port, which the system chooses where the address asks for port 0.

    A request may have up to MAX_REQUEST_BYTES; a longer one is refused with RESOURCE_EXHAUSTED. Raises RuntimeError,
    naming the address, where it cannot be bound.
    """
    server = grpc.aio.server(options=(("grpc.max_receive_message_length", MAX_REQUEST_BYTES), ("grpc.so_reuseport", 0)))
    p4r_grpc.add_P4RuntimeServicer_to_server(service, server)
    port = server.add_insecure_port(address)
    await server.start()
    try:
        yield port
    finally:
        await server.stop(grace=None)
