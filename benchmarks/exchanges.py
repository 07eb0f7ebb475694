"""Measures how many probe reports a controller processes in a second of processor time."""

import asyncio
import multiprocessing
import time
from multiprocessing.connection import Connection

import grpc
import grpc.aio

from controller.api.messages import probe_answer, probe_exchange
from controller.process.server import SERVER_OPTIONS
from controller.telemetry.telemetry import Telemetry
from hostlib.wire import trainyard_pb2 as wire
from hostlib.wire.methods import EXCHANGE_PROBES, SERVICE

Exchanges = list[tuple[float, bytes]]
"""The time and the bytes of each request."""


def reports_per_s(telemetry: Telemetry, exchanges: Exchanges) -> float:
    """Measure from the bytes of each request to those of its response."""
    start_s = time.process_time()
    for now_s, octets in exchanges:
        _answer(telemetry, octets, now_s)
    return _num_reports(telemetry) / (time.process_time() - start_s)


def reports_per_s_by_grpc(telemetry: Telemetry, exchanges: Exchanges) -> float:
    """Measure the whole process of a gRPC server with its threads, which another process calls over loopback."""
    return asyncio.run(_serve(telemetry, exchanges))


async def _serve(telemetry: Telemetry, exchanges: Exchanges) -> float:
    times_s = iter([now_s for now_s, _ in exchanges])

    async def answer(octets: bytes, _: grpc.aio.ServicerContext[bytes, bytes]) -> bytes:
        return _answer(telemetry, octets, next(times_s))

    server = grpc.aio.server(options=SERVER_OPTIONS)
    methods = {EXCHANGE_PROBES.name: grpc.unary_unary_rpc_method_handler(answer, None, None)}
    server.add_generic_rpc_handlers((grpc.method_handlers_generic_handler(SERVICE, methods),))
    port = server.add_insecure_port("127.0.0.1:0")
    await server.start()
    context = multiprocessing.get_context("spawn")
    ours, theirs = context.Pipe()
    caller = context.Process(target=_call, args=(port, [octets for _, octets in exchanges], theirs))
    caller.start()
    await asyncio.to_thread(ours.recv)
    start_s = time.process_time()
    ours.send(None)
    await asyncio.to_thread(caller.join)
    taken_s = time.process_time() - start_s
    await server.stop(None)
    assert caller.exitcode == 0
    return _num_reports(telemetry) / taken_s


def _call(port: int, requests: list[bytes], controller: "Connection[None, None]") -> None:
    with grpc.insecure_channel(f"127.0.0.1:{port}") as channel:
        exchange = channel.unary_unary(EXCHANGE_PROBES.path, None, None)
        grpc.channel_ready_future(channel).result()
        controller.send(None)
        controller.recv()
        for request in requests:
            exchange(request)


def _answer(telemetry: Telemetry, octets: bytes, now_s: float) -> bytes:
    request = wire.ExchangeProbesRequest.FromString(octets)
    telemetry.authorise(request.host, request.owner_token, len(request.reports), now_s)
    return probe_answer(telemetry.exchange(probe_exchange(request), now_s)).SerializeToString()


def _num_reports(telemetry: Telemetry) -> int:
    assert not telemetry.rejected
    return sum(pair.received for pair in telemetry.pairs(0.0))
