"""No silence: unreachable controllers, and errors of the library itself, are logged once and shown."""

import asyncio
import contextlib
import logging
import time
from collections.abc import AsyncIterator

import grpc
import grpc.aio
import pytest

from experiments.scenarios.driven.clock import DrivenClock
from hostlib import BlockingClient, Client, RefusalReason
from hostlib.connection import Connection
from hostlib.messages import flow_group_to_wire
from hostlib.reachability import PATIENCE_S as SILENCE_S
from hostlib.reachability import Reachability
from hostlib.wire.methods import REGISTER_JOB
from tests.hostlib.served import GPT, RING, served
from tests.patience import PATIENCE_S, until
from tests.ports import free_port


def warnings(caplog: pytest.LogCaptureFixture) -> list[str]:
    return [record.getMessage() for record in caplog.records if record.levelno >= logging.WARNING]


@pytest.mark.parametrize(("address", "why"), [("127.0.0.1:1", "refused"), ("nohost.invalid:4790", "nohost.invalid")])
def test_one_warning_tells_that_no_controller_can_be_reached(
    caplog: pytest.LogCaptureFixture, address: str, why: str
) -> None:
    with BlockingClient(address) as client:
        client.register_job(GPT)
        client.register_flow_groups("gpt", [RING])
        end_s = time.monotonic() + PATIENCE_S
        while not warnings(caplog):
            assert time.monotonic() < end_s
            time.sleep(0.01)
        assert not client.acknowledged("gpt", 1.0)  # tried again several times
        assert client.refusal("gpt") is None
    [said] = warnings(caplog)
    assert said.startswith(
        f"no controller answers at {address}; jobs run on without it, and the library keeps trying: "
    )
    assert why in said


def test_a_controller_that_answers_at_last_is_told_of_in_one_line(caplog: pytest.LogCaptureFixture) -> None:
    async def scenario() -> None:
        address = f"127.0.0.1:{free_port()}"
        async with Client(address) as client:
            client.register_job(GPT)
            await until(lambda: bool(warnings(caplog)))
            async with served(address):
                assert await client.acknowledged("gpt", PATIENCE_S)
                assert warnings(caplog)[1:] == [f"the controller at {address} answers"]

    asyncio.run(asyncio.wait_for(scenario(), PATIENCE_S))


def test_short_absences_are_not_told_of(caplog: pytest.LogCaptureFixture) -> None:
    reachability = Reachability(["one:1", "two:2"])
    reachability.note_answer()
    for start_s in (0.0, 100.0):
        for passed_s in (0.0, SILENCE_S / 2, 0.99 * SILENCE_S):
            reachability.note_silence("refused", start_s + passed_s)
        reachability.note_answer()
    assert caplog.messages == []
    for passed_s in (0.0, SILENCE_S, 10 * SILENCE_S):
        reachability.note_silence("refused", 200.0 + passed_s)
    reachability.note_answer()
    reachability.note_answer()
    assert [message.split(";")[0] for message in caplog.messages] == [
        "no controller answers at one:1, two:2",
        "the controller at one:1, two:2 answers",
    ]


class _Broken(DrivenClock):
    """A clock that fails when somebody waits for it."""

    async def wait_until(self, time_s: float) -> None:
        raise OSError(f"no timer for {time_s}")


def test_an_error_of_the_session_is_logged_once_and_shown_as_the_refusal(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    tried = []

    def fail(group: object) -> object:
        tried.append(group)
        raise TypeError("nothing that protobuf can carry")

    async def scenario() -> None:
        async with served() as controller, Client(controller.address) as client:
            monkeypatch.setattr("hostlib.job_session._LAST_RETRY_S", 0.01)
            monkeypatch.setattr("hostlib.messages.flow_group_to_wire", fail)
            client.register_job(GPT)
            client.register_flow_groups("gpt", [RING])
            assert not await client.acknowledged("gpt", PATIENCE_S)
            refusal = client.refusal("gpt")
            assert refusal is not None
            assert refusal.reason is RefusalReason.FAILED
            assert "the host library failed: TypeError: nothing that protobuf can carry" in str(refusal)
            await until(lambda: len(tried) > 3)
            monkeypatch.setattr("hostlib.messages.flow_group_to_wire", flow_group_to_wire)
            await until(lambda: client.refusal("gpt") is None)
            assert await client.acknowledged("gpt", PATIENCE_S)

    asyncio.run(asyncio.wait_for(scenario(), PATIENCE_S))
    assert warnings(caplog) == [
        "job gpt: its session failed, and it runs without: TypeError: nothing that protobuf can carry"
    ]
    assert caplog.records[0].exc_info is not None


def test_a_clock_that_fails_is_shown_and_does_not_spin(caplog: pytest.LogCaptureFixture) -> None:
    async def scenario() -> None:
        async with served() as controller, Client(controller.address, clock=_Broken()) as client:
            client.register_job(GPT)
            await until(lambda: client.refusal("gpt") is not None)
            assert "OSError: no timer for" in str(client.refusal("gpt"))

    asyncio.run(asyncio.wait_for(scenario(), PATIENCE_S))
    assert len(warnings(caplog)) == 1


def test_an_error_of_the_farewell_is_logged(caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch) -> None:
    async def fail(*_: object) -> None:
        raise RuntimeError("no farewell")

    async def scenario() -> None:
        async with served() as controller, Client(controller.address) as client:
            client.register_job(GPT)
            assert await client.acknowledged("gpt", PATIENCE_S)
            monkeypatch.setattr(Connection, "deregister", fail)
            client.deregister("gpt")

    asyncio.run(asyncio.wait_for(scenario(), PATIENCE_S))
    assert warnings(caplog) == ["job gpt: could not be withdrawn, so its lease will run out"]


def test_a_thread_that_fails_is_logged_and_shown(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def fail(_: object) -> None:
        raise RuntimeError("no connection at all")

    monkeypatch.setattr(Client, "__aenter__", fail)
    with BlockingClient("127.0.0.1:1") as client:
        client.register_job(GPT)
        refusal = client.refusal("gpt")
        assert refusal is not None
        assert "RuntimeError: no connection at all" in str(refusal)
        assert not client.acknowledged("gpt", 1.0)
    assert warnings(caplog) == ["the thread of the host library failed, and jobs run on without a controller"]


def test_what_is_reported_while_the_thread_is_busy_is_not_lost() -> None:
    async def stall() -> None:
        time.sleep(1.5)

    with BlockingClient("127.0.0.1:1") as client:
        asyncio.run_coroutine_threadsafe(stall(), client._loop)
        client.register_job(GPT)
        client.register_flow_groups("gpt", [RING])
        assert client.newest_directives("gpt") is None
        assert not client.acknowledged("gpt", 0.1)


@contextlib.asynccontextmanager
async def answering(lease_s: float) -> AsyncIterator[str]:
    """A controller that answers registrations alone, with any lease."""

    async def answer(*_: object) -> object:
        return REGISTER_JOB.response(lease_s=lease_s)

    handler = grpc.unary_unary_rpc_method_handler(answer, None, REGISTER_JOB.response.SerializeToString)
    server = grpc.aio.server()
    server.add_generic_rpc_handlers(
        (grpc.method_handlers_generic_handler("trainyard.v1.Controller", {REGISTER_JOB.name: handler}),)
    )
    port = server.add_insecure_port("127.0.0.1:0")
    await server.start()
    try:
        yield f"127.0.0.1:{port}"
    finally:
        await server.stop(None)


@pytest.mark.parametrize("lease_s", [0.0, -1.0, float("nan"), float("inf")])
def test_a_lease_that_is_no_time_is_shown(lease_s: float) -> None:
    async def scenario() -> None:
        async with answering(lease_s) as address, Client(address) as client:
            client.register_job(GPT)
            await until(lambda: client.refusal("gpt") is not None)
            assert "lease_s: the controller answered" in str(client.refusal("gpt"))

    asyncio.run(asyncio.wait_for(scenario(), PATIENCE_S))
