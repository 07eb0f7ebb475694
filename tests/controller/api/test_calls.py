"""Calls that are slow, large, half open or too many: refused, counted, and nothing changes."""

import asyncio
import contextlib
import socket
from collections.abc import AsyncIterator
from pathlib import Path

import grpc
import grpc.aio
import pytest

from controller.access.options import Quotas
from controller.api import calls as admission
from controller.api import rate_limiter
from controller.process import server
from hostlib.connection import Connection
from hostlib.errors import RefusalReason, RefusedError
from hostlib.messages import MAX_MESSAGE_BYTES
from hostlib.wire import methods
from tests.controller.access.secured import Trial, secured
from tests.controller.access.test_roles import GPT, run
from tests.patience import PATIENCE_S


@pytest.fixture
def trial(tmp_path: Path) -> Trial:
    return Trial(tmp_path)


async def _nothing() -> AsyncIterator[bytes]:
    await asyncio.Event().wait()
    yield b""


async def _ends_at_once() -> AsyncIterator[bytes]:
    return
    yield b""


def test_a_request_that_does_not_come_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(admission, "READ_LIMIT_S", 0.2)

    async def scenario() -> None:
        async with secured() as controller, grpc.aio.insecure_channel(controller.address) as channel:
            half_open = channel.stream_unary(methods.HEARTBEAT.path)
            for requests, said in ((_nothing(), "has not come within 0.2 s"), (_ends_at_once(), "there is none")):
                with pytest.raises(grpc.aio.AioRpcError, match=said) as refused:
                    await half_open(requests, timeout=PATIENCE_S)
                assert refused.value.code() is grpc.StatusCode.INVALID_ARGUMENT
            assert controller.core.calls.refusals["", "INVALID_ARGUMENT"] == 2

    run(scenario)


def test_a_stranger_is_refused_before_the_request_is_read(tmp_path: Path) -> None:
    trial = Trial(tmp_path)
    trial.token("somebody", admission.Role.VIEWER)

    async def scenario() -> None:
        async with (
            secured(tokens=tmp_path / "tokens.yaml") as controller,
            grpc.aio.insecure_channel(controller.address) as channel,
        ):
            with pytest.raises(grpc.aio.AioRpcError) as refused:
                await channel.stream_unary(methods.REGISTER_JOB.path)(_nothing(), timeout=PATIENCE_S)
            assert refused.value.code() is grpc.StatusCode.UNAUTHENTICATED

    run(scenario)


def test_an_oversized_request_is_refused() -> None:
    async def scenario() -> None:
        async with secured() as controller, grpc.aio.insecure_channel(controller.address) as channel:
            with pytest.raises(grpc.aio.AioRpcError) as refused:
                await channel.unary_unary(methods.REGISTER_JOB.path)(bytes(MAX_MESSAGE_BYTES + 1), timeout=PATIENCE_S)
            assert refused.value.code() is grpc.StatusCode.RESOURCE_EXHAUSTED
            assert controller.core.registry.jobs == ()

    run(scenario)


@pytest.mark.slow
def test_connections_that_say_nothing_are_closed_and_starve_nobody(monkeypatch: pytest.MonkeyPatch) -> None:
    options = dict(server.SERVER_OPTIONS) | {"grpc.server_handshake_timeout_ms": 500}
    monkeypatch.setattr(server, "SERVER_OPTIONS", tuple(options.items()))
    monkeypatch.setattr(server, "_raise_file_limit", lambda: 200)

    async def scenario() -> None:
        async with secured() as controller, Connection(controller.address, "t", PATIENCE_S) as genuine:
            await genuine.register_job(GPT)
            address = ("127.0.0.1", int(controller.address.rpartition(":")[2]))
            with contextlib.ExitStack() as stack:
                idle = [stack.enter_context(socket.create_connection(address)) for _ in range(300)]
                await genuine.heartbeat("gpt")
                for each in idle:
                    each.setblocking(False)
                    while await asyncio.wait_for(_received(each), PATIENCE_S):
                        pass
            async with Connection(controller.address, "u", PATIENCE_S) as later:
                await later.deregister("none")

    run(scenario)


def test_an_identity_has_so_many_connections_and_no_more(trial: Trial) -> None:
    async def scenario() -> None:
        async with (
            secured(tls=trial.tls, quotas=Quotas(connections=2)) as controller,
            contextlib.AsyncExitStack() as stack,
        ):
            credentials = trial.certificate("job-vision")
            first, second, third = [
                await stack.enter_async_context(
                    Connection(controller.address, "t", PATIENCE_S, credentials=credentials)
                )
                for _ in range(3)
            ]
            await first.register_job(GPT)
            await second.heartbeat("gpt")
            with pytest.raises(RefusedError, match="this identity may have 2 at a time") as refused:
                await third.heartbeat("gpt")
            assert refused.value.reason is RefusalReason.EXHAUSTED
            await first.heartbeat("gpt")

    run(scenario)


@pytest.mark.slow
def test_the_rate_of_an_identity_is_limited_over_all_its_connections(
    trial: Trial, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(rate_limiter, "BURST_UNITS", 50)
    monkeypatch.setattr(rate_limiter, "MAX_DELAY_S", 0.0)
    monkeypatch.setattr(rate_limiter, "PENALTY_S", 0.0)

    async def scenario() -> None:
        few = {"vision": Quotas(requests_per_s=0.001)}
        async with secured(tls=trial.tls, tenants=few) as controller, contextlib.AsyncExitStack() as stack:

            async def connection(client: str) -> Connection:
                opened = Connection(controller.address, "t", PATIENCE_S, credentials=trial.certificate(client))
                return await stack.enter_async_context(opened)

            flooding = [await connection("job-vision") for _ in range(4)]
            refused = 0
            for number in range(100):
                try:
                    await flooding[number % 4].deregister("none")
                except RefusedError as error:
                    refused += error.reason is RefusalReason.EXHAUSTED
            assert refused >= 50
            assert controller.core.calls.refusals["vision", "RESOURCE_EXHAUSTED"] == refused
            await (await connection("job-speech")).register_job(GPT)

    run(scenario)


async def _received(each: socket.socket) -> bytes:
    try:
        return await asyncio.get_running_loop().sock_recv(each, 4096)
    except ConnectionError:
        return b""
