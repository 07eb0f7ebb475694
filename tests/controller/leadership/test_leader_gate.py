"""Calls to a controller that does not lead, and calls in progress when its term ends."""

import asyncio
from collections.abc import AsyncIterator, Iterator
from contextlib import ExitStack, asynccontextmanager, contextmanager, suppress
from typing import Any

import grpc
import grpc.aio
import pytest

from controller.leadership.leader_gate import LeaderGate
from hostlib.connection import Connection
from hostlib.errors import RefusedError, UnreachableError
from hostlib.wire import methods
from hostlib.wire import trainyard_pb2 as wire
from tests.patience import PATIENCE_S


class _Leader:
    """Answers heartbeats, all but those for "slow" and "refused", and sends directives without an end, one at first.

    It is still busy with a "refused" one after it has refused it.
    """

    def __init__(self) -> None:
        self.begun = self.cancelled = 0

    def handler(self) -> grpc.GenericRpcHandler:
        return grpc.method_handlers_generic_handler(
            methods.SERVICE,
            {
                methods.HEARTBEAT.name: grpc.unary_unary_rpc_method_handler(
                    self._heartbeat, wire.HeartbeatRequest.FromString, wire.HeartbeatResponse.SerializeToString
                ),
                methods.DIRECTIVES.name: grpc.unary_stream_rpc_method_handler(
                    self._directives, wire.DirectivesRequest.FromString, wire.DirectivesResponse.SerializeToString
                ),
            },
        )

    async def _heartbeat(
        self, request: wire.HeartbeatRequest, context: "grpc.aio.ServicerContext[Any, Any]"
    ) -> wire.HeartbeatResponse:
        if request.job == "refused":
            with suppress(grpc.aio.AbortError):
                await context.abort(grpc.StatusCode.NOT_FOUND, "no such job")
        if request.job in ("slow", "refused"):
            with self._counted():
                await asyncio.Event().wait()
        return wire.HeartbeatResponse()

    async def _directives(self, _: wire.DirectivesRequest, __: object) -> AsyncIterator[wire.DirectivesResponse]:
        yield wire.DirectivesResponse(plan_number=1)
        with self._counted():
            await asyncio.Event().wait()

    @contextmanager
    def _counted(self) -> Iterator[None]:
        self.begun += 1
        try:
            yield
        except asyncio.CancelledError:
            self.cancelled += 1
            raise


@asynccontextmanager
async def _served() -> AsyncIterator[tuple[LeaderGate, Connection]]:
    gate = LeaderGate(lambda: "two does")
    server = grpc.aio.server()
    server.add_generic_rpc_handlers((gate,))
    port = server.add_insecure_port("127.0.0.1:0")
    await server.start()
    async with Connection(f"127.0.0.1:{port}") as connection:
        yield gate, connection
    await server.stop(None)


def test_a_refusal_names_the_leader_which_answers_calls() -> None:
    async def scenario() -> None:
        async with _served() as (gate, connection):
            for _ in range(2):
                with pytest.raises(UnreachableError, match="this controller does not lead: two does"):
                    await connection.heartbeat("gpt")
                with pytest.raises(UnreachableError, match="does not lead"):
                    await anext(connection.directives("gpt"))
                with gate.serving((_Leader().handler(),)):
                    await connection.heartbeat("gpt")
                    assert (await anext(connection.directives("gpt"))).plan_number == 1

    asyncio.run(asyncio.wait_for(scenario(), PATIENCE_S))


def test_calls_under_way_are_refused_when_the_term_ends() -> None:
    async def scenario() -> None:
        async with _served() as (gate, connection):
            leader = _Leader()
            with ExitStack() as serving:
                serving.enter_context(gate.serving((leader.handler(),)))
                directives = connection.directives("gpt")
                await anext(directives)
                waiting = [asyncio.ensure_future(call) for call in (anext(directives), connection.heartbeat("slow"))]
                while leader.begun < 2:
                    await asyncio.sleep(0.01)
                serving.close()
                for call in waiting:
                    with pytest.raises(UnreachableError, match="does not lead"):
                        await call
            assert leader.cancelled == 2

    asyncio.run(asyncio.wait_for(scenario(), PATIENCE_S))


def test_a_call_that_is_being_refused_when_the_term_ends_is_refused_once(caplog: pytest.LogCaptureFixture) -> None:
    async def scenario() -> None:
        async with _served() as (gate, connection):
            leader = _Leader()
            with ExitStack() as serving:
                serving.enter_context(gate.serving((leader.handler(),)))
                refused = asyncio.ensure_future(connection.heartbeat("refused"))
                while leader.begun < 1:
                    await asyncio.sleep(0.01)
                serving.close()
                with pytest.raises(RefusedError, match="no such job"):
                    await refused
            while leader.cancelled < 1:
                await asyncio.sleep(0.01)

    asyncio.run(asyncio.wait_for(scenario(), PATIENCE_S))
    assert caplog.messages == []
