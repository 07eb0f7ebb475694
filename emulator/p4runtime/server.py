"""Servers for P4Runtime and gNMI."""

from collections.abc import AsyncIterator, Mapping
from contextlib import AsyncExitStack, asynccontextmanager

import grpc
from finsy.proto import gnmi_grpc, p4r_grpc

from emulator.p4runtime.addresses import require_free
from emulator.p4runtime.decoding import DecodingInterceptor
from emulator.p4runtime.gnmi import InterfaceService, SetPort
from emulator.p4runtime.packet_traces import PacketTraces, TracePacket
from emulator.p4runtime.service import P4RuntimeService
from emulator.p4runtime.tls import ServerTls

MAX_REQUEST_BYTES = 16 * 1024 * 1024
MAX_CALLS = 1024
"""Calls and streams at a time on one port; further ones are refused with RESOURCE_EXHAUSTED."""

_END_S = 0.05
"""How long subscriptions have to end by themselves."""

_OPTIONS = (
    ("grpc.max_receive_message_length", MAX_REQUEST_BYTES),
    ("grpc.max_concurrent_streams", 128),
    ("grpc.max_connection_idle_ms", 300_000),
    # A client that has gone without a word is noticed within a minute.
    ("grpc.keepalive_time_ms", 40_000),
    ("grpc.keepalive_timeout_ms", 20_000),
    ("grpc.so_reuseport", 0),
)


@asynccontextmanager
async def serve(
    service: P4RuntimeService,
    address: str = "127.0.0.1:0",
    credentials: ServerTls | None = None,
    set_port: SetPort | None = None,
    trace: TracePacket | None = None,
) -> AsyncIterator[int]:
    """Serve all switches until the block ends; yields the TCP port, which the system chooses for port 0.

    A request may have up to MAX_REQUEST_BYTES; longer ones are refused with RESOURCE_EXHAUSTED. ``set_port`` is the
    fabric's, for gNMI, and ``trace`` follows a packet through the fabric; both are called while the service's
    ``exclusive`` is held. Raises OSError, naming the address, if it cannot be bound, and the errors of
    ``ServerTls.credentials``.
    """
    server = grpc.aio.server(interceptors=(DecodingInterceptor(),), options=_OPTIONS, maximum_concurrent_rpcs=MAX_CALLS)
    p4r_grpc.add_P4RuntimeServicer_to_server(service, server)
    interfaces = InterfaceService(service.switches, service.exclusive, set_port)
    gnmi_grpc.add_gNMIServicer_to_server(interfaces, server)
    if trace is not None:
        PacketTraces(trace, service.exclusive).add_to(server)
    secrets = credentials and credentials.credentials()
    require_free(address)
    try:
        port = server.add_secure_port(address, secrets) if secrets else server.add_insecure_port(address)
    except RuntimeError:
        # Another process was faster; gRPC reports it in its own words.
        raise OSError(f"{address} is taken or cannot be bound") from None
    await server.start()
    try:
        yield port
    finally:
        # A subscription waits for its switch, not for gRPC, which would log its late end as an error.
        interfaces.end()
        await server.stop(grace=_END_S)


@asynccontextmanager
async def serve_each(
    service: P4RuntimeService,
    host: str = "127.0.0.1",
    first_port: int = 0,
    credentials: ServerTls | None = None,
    set_port: SetPort | None = None,
    trace: TracePacket | None = None,
) -> AsyncIterator[Mapping[str, int]]:
    """Serve every switch on a TCP port of its own until the block ends; yields the ports by switch name.

    Ports count up from ``first_port``, or are chosen by the system if that is 0. With one device per port, gNMI clients
    such as finsy need not name it. Raises as ``serve`` does.
    """
    async with AsyncExitStack() as stack:
        ports = {}
        for number, switch in enumerate(service.switches):
            address = f"{host}:{first_port + number if first_port else 0}"
            serving = serve(service.alone(switch), address, credentials, set_port, trace)
            ports[switch.name] = await stack.enter_async_context(serving)
        yield ports
