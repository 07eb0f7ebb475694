"""Clients with several addresses, one of which answers."""

import asyncio
import contextlib
from collections.abc import AsyncIterator
from ipaddress import IPv4Address

import grpc
import grpc.aio
import pytest

from hostlib.blocking import BlockingClient
from hostlib.client import Client
from hostlib.connection import Connection
from hostlib.errors import RefusedError, UnreachableError
from hostlib.wire.methods import DIRECTIVES
from tests.hostlib.served import GPT, RING, served
from tests.patience import PATIENCE_S

pytestmark = pytest.mark.slow

_NOBODY = "127.0.0.1:1"


class _Standby(grpc.GenericRpcHandler):
    """A passive controller."""

    def service(self, _: grpc.HandlerCallDetails) -> "grpc.RpcMethodHandler[bytes, bytes]":
        async def refuse(_: bytes, context: "grpc.aio.ServicerContext[bytes, bytes]") -> None:
            await context.abort(grpc.StatusCode.UNAVAILABLE, "not the leader")

        return grpc.unary_unary_rpc_method_handler(refuse, None, None)


class _Hung(grpc.GenericRpcHandler):
    """Sends one message of directives and answers nothing afterwards."""

    def service(self, details: grpc.HandlerCallDetails) -> "grpc.RpcMethodHandler[bytes, bytes]":
        async def answer(_: bytes, __: object) -> AsyncIterator[bytes]:
            if details.method == DIRECTIVES.path:
                yield DIRECTIVES.response(plan_number=1).SerializeToString()
            await asyncio.Event().wait()

        return grpc.unary_stream_rpc_method_handler(answer, None, None)


@contextlib.asynccontextmanager
async def _serving(handler: grpc.GenericRpcHandler) -> AsyncIterator[str]:
    server = grpc.aio.server()
    server.add_generic_rpc_handlers((handler,))
    port = server.add_insecure_port("127.0.0.1:0")
    await server.start()
    try:
        yield f"127.0.0.1:{port}"
    finally:
        await server.stop(None)


def test_the_leader_is_found_behind_addresses_that_do_not_answer_or_do_not_lead() -> None:
    async def scenario() -> None:
        async with (
            _serving(_Standby()) as standby,
            served() as leader,
            Connection([_NOBODY, standby, leader.address]) as connection,
        ):
            await connection.register_job(GPT)
            await connection.register_flow_groups("gpt", [RING])
            assert (await connection.plan()).policy in ("", "crux")
            assert await connection.locate_nics([IPv4Address(0)]) == (None,)
            assert [job.request.name for job in leader.registry.jobs] == ["gpt"]

    asyncio.run(asyncio.wait_for(scenario(), PATIENCE_S))


def test_where_no_address_answers_the_error_names_what_each_said() -> None:
    async def scenario() -> None:
        async with _serving(_Standby()) as standby, Connection([_NOBODY, standby], deadline_s=PATIENCE_S) as connection:
            with pytest.raises(UnreachableError, match=r"refused.*; not the leader"):
                await connection.heartbeat("gpt")
            with pytest.raises(UnreachableError, match=r"refused.*; not the leader"):
                await connection.plan()

    asyncio.run(asyncio.wait_for(scenario(), PATIENCE_S))


def test_a_refusal_is_an_answer_and_no_other_address_is_asked() -> None:
    async def scenario() -> None:
        async with served() as first, served() as second, Connection([first.address, second.address]) as connection:
            await connection.register_job(GPT)
            second.registry.register_job(first.registry.jobs[0].request, 0.0, connection.owner_token)
            first.registry.deregister("gpt")
            with pytest.raises(RefusedError, match="not registered"):
                await connection.heartbeat("gpt")

    asyncio.run(asyncio.wait_for(scenario(), PATIENCE_S))


def test_a_job_follows_to_the_next_address_and_loses_nothing() -> None:
    async def scenario() -> None:
        async with contextlib.AsyncExitStack() as first_alone, served() as second:
            first = await first_alone.enter_async_context(served())
            async with Client([first.address, second.address]) as client:
                client.register_job(GPT)
                client.register_flow_groups("gpt", [RING])
                directives = client.directives("gpt")
                await anext(told async for told in directives if told.flows)
                five_tuples = client.five_tuples("gpt")
                await first_alone.aclose()
                await anext(told async for told in directives if told.flows)
                assert await client.acknowledged("gpt", PATIENCE_S)
                (job,) = second.registry.jobs
                assert [group.name for group in job.flow_groups] == ["ring"]
                assert client.five_tuples("gpt") == five_tuples

    asyncio.run(asyncio.wait_for(scenario(), PATIENCE_S))


def test_directives_end_of_a_controller_that_answers_no_longer_where_another_does() -> None:
    async def scenario() -> None:
        async with (
            _serving(_Hung()) as hung,
            served() as leader,
            Connection([hung, leader.address], deadline_s=3.0) as connection,
        ):
            directives = connection.directives("gpt")
            assert (await anext(directives)).plan_number == 1
            await connection.register_job(GPT)
            with pytest.raises(UnreachableError):
                await anext(directives)
            await connection.register_flow_groups("gpt", [RING])
            # There may have been a plan for the job before that for its flows.
            assert await anext(len(told.flows) async for told in connection.directives("gpt") if told.flows) == 2

    asyncio.run(asyncio.wait_for(scenario(), PATIENCE_S))


@pytest.mark.parametrize("address", [[], "", ["127.0.0.1:1", ""]])
def test_a_list_without_an_address_is_refused_at_once(address: str | list[str]) -> None:
    for client in (Connection, Client, BlockingClient):
        with pytest.raises(ValueError, match="address"):
            client(address)
