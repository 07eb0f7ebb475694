"""A client that floods is refused without harm to others, and slow readers do not use up memory."""

import asyncio
import contextlib

import grpc
import grpc.aio
import pytest

from controller.api import rate_limiter as flood_gate
from controller.api.rate_limiter import BYTES_PER_UNIT, RateLimiter, RateLimitError
from controller.planning.directives import FlowDirective, JobDirectives
from hostlib.connection import Connection
from hostlib.errors import RefusalReason, RefusedError
from hostlib.messages import MAX_ADDRESSES_PER_CALL
from hostlib.wire import methods
from hostlib.wire import trainyard_pb2 as wire
from policies.flows import FlowKey
from tests.controller.leadership import virtual_time
from tests.hostlib.served import GPT, RING, served
from tests.patience import PATIENCE_S

pytestmark = pytest.mark.slow


@pytest.fixture(autouse=True)
def _strict(monkeypatch: pytest.MonkeyPatch) -> None:
    """Limits that a test reaches at once."""
    monkeypatch.setattr(flood_gate, "UNITS_PER_S", 100)
    monkeypatch.setattr(flood_gate, "BURST_UNITS", 200)
    monkeypatch.setattr(flood_gate, "MAX_DELAY_S", 0.2)
    monkeypatch.setattr(flood_gate, "PENALTY_S", 0.1)


def test_a_flood_is_refused_and_others_are_answered(monkeypatch: pytest.MonkeyPatch) -> None:
    # However long it takes, nothing to speak of comes back meanwhile.
    monkeypatch.setattr(flood_gate, "UNITS_PER_S", 0.001)

    async def scenario() -> None:
        async with (
            served(plans_by_itself=False) as controller,
            grpc.aio.insecure_channel(controller.address) as flooding,
            Connection(controller.address) as other,
        ):
            heartbeat = flooding.unary_unary(methods.HEARTBEAT.path)
            request = wire.HeartbeatRequest(job="nobody", owner_token="x").SerializeToString()

            async def call() -> grpc.StatusCode:
                with contextlib.suppress(grpc.aio.AioRpcError):
                    await heartbeat(request, timeout=PATIENCE_S)
                    return grpc.StatusCode.OK
                return await heartbeat(request, timeout=PATIENCE_S).code()

            flood = asyncio.gather(*(call() for _ in range(800)))
            await other.register_job(GPT)
            await other.register_flow_groups("gpt", [RING])
            codes = await flood
            assert set(codes) <= {grpc.StatusCode.NOT_FOUND, grpc.StatusCode.RESOURCE_EXHAUSTED}
            assert codes.count(grpc.StatusCode.RESOURCE_EXHAUSTED) > len(codes) / 2
            assert len(controller.registry.jobs) == 1

    asyncio.run(asyncio.wait_for(scenario(), PATIENCE_S))


def test_bytes_count_as_calls_do_and_a_connection_that_waits_is_let_through_again() -> None:
    async def scenario() -> None:
        gate = RateLimiter()
        async with gate.admitted("large", 190 * BYTES_PER_UNIT):
            pass
        with pytest.raises(RateLimitError, match="as much"):
            await gate.charge("large", 100 * BYTES_PER_UNIT)
        async with gate.admitted("another", 100 * BYTES_PER_UNIT):
            pass
        async with asyncio.timeout(PATIENCE_S):
            while True:
                with contextlib.suppress(RateLimitError):
                    await gate.charge("large", 100 * BYTES_PER_UNIT)
                    break

    virtual_time.run(scenario())


def test_the_answer_about_addresses_counts_too(monkeypatch: pytest.MonkeyPatch) -> None:
    # However long it takes, nothing to speak of comes back meanwhile.
    monkeypatch.setattr(flood_gate, "UNITS_PER_S", 0.001)

    async def scenario() -> None:
        async with served(plans_by_itself=False) as controller, Connection(controller.address) as client:
            address = controller.routing.fabric.nics["h0"][0].address
            request = wire.LocateNicsRequest(addresses=[address] * MAX_ADDRESSES_PER_CALL)
            answer = await client._channel.call(methods.LOCATE_NICS, request, PATIENCE_S)
            units = 1 + (request.ByteSize() + answer.ByteSize()) / BYTES_PER_UNIT
            for _ in range(1, int(flood_gate.BURST_UNITS / units)):
                await client._channel.call(methods.LOCATE_NICS, request, PATIENCE_S)
            with pytest.raises(RefusedError) as refusal:
                await client._channel.call(methods.LOCATE_NICS, request, PATIENCE_S)
            assert refusal.value.reason is RefusalReason.EXHAUSTED

    asyncio.run(asyncio.wait_for(scenario(), PATIENCE_S))


def test_requests_that_wait_are_bounded_in_bytes(monkeypatch: pytest.MonkeyPatch) -> None:
    async def scenario() -> None:
        gate = RateLimiter()
        async with gate.admitted("one", 600):
            with pytest.raises(RateLimitError, match="bytes of requests waiting"):
                async with gate.admitted("one", 600):
                    pass
        async with gate.admitted("one", 600):
            pass

    monkeypatch.setattr(flood_gate, "MAX_HELD_BYTES", 1000)
    virtual_time.run(scenario())


def test_a_reader_that_stops_reading_is_sent_the_newest_and_not_all() -> None:
    num_plans, num_flows = 100, 2000
    # gRPC reads ahead of its user; here as little as it can.
    options = (("grpc.http2.bdp_probe", 0), ("grpc.http2.lookahead_bytes", 65_536))

    async def scenario() -> None:
        async with (
            served(plans_by_itself=False) as controller,
            grpc.aio.insecure_channel(controller.address, options) as channel,
            Connection(controller.address, owner_token="owner") as owner,
        ):
            await owner.register_job(GPT)
            request = wire.DirectivesRequest(job="gpt", owner_token="owner").SerializeToString()
            stream = channel.unary_stream(methods.DIRECTIVES.path)(request)
            source, destination = (controller.routing.fabric.nics[host][0] for host in GPT.hosts)
            path = controller.routing.candidate_paths(source, destination)[0]
            flows = tuple(FlowDirective(FlowKey("gpt", "ring", n), path, 0, 0, 49152) for n in range(num_flows))
            for number in range(1, num_plans + 1):
                await controller.directives.publish({"gpt": JobDirectives(number, 0.0, None, flows)})
                await asyncio.sleep(0.02)
            numbers = []
            while not numbers or numbers[-1] < num_plans:
                numbers.append(wire.DirectivesResponse.FromString(await stream.read()).plan_number)
            assert numbers == sorted(numbers)
            assert len(numbers) < num_plans / 2
            stream.cancel()

    asyncio.run(asyncio.wait_for(scenario(), PATIENCE_S))


def test_an_account_with_a_request_under_way_is_kept_when_others_come(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(flood_gate, "MOST_READ_AT_ONCE", 2)

    async def scenario() -> None:
        gate = RateLimiter()
        async with gate.reading("half open"), gate.admitted("another", 0), gate.reading("half open"):
            with pytest.raises(TimeoutError):
                async with asyncio.timeout(1.0), gate.reading("half open"):
                    pass

    virtual_time.run(scenario())
