"""Switches that answer nonsense, too much, or not at all are told of in a line, and cost little."""

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import grpc.aio
import pytest
from finsy.proto import p4r, rpc_status

from controller.rules.flow_rules import FlowRule
from controller.southbound.southbound import SouthboundError, SwitchCondition
from tests.controller.southbound.p4runtime.memory_server import MemoryServer, connected, serving
from tests.patience import PATIENCE_S, until
from topologies.routing import Routing


def test_a_connection_that_is_closed_under_a_write_leaves_the_switch_away(star: Routing, rule: FlowRule) -> None:
    class Stuck(MemoryServer):
        """Once told so it answers no writes, and ends its streams instead."""

        def __init__(self) -> None:
            super().__init__()
            self.is_stuck = False
            self.asked = asyncio.Event()

        async def StreamChannel(self, requests: AsyncIterator[Any], context: Any) -> AsyncIterator[Any]:  # noqa: N802
            async for request in requests:
                yield p4r.StreamMessageResponse(arbitration=request.arbitration)
                await self.asked.wait()
                await context.abort(grpc.StatusCode.UNAVAILABLE, "going")

        async def Write(self, request: Any, context: Any) -> p4r.WriteResponse:  # noqa: N802
            if self.is_stuck:
                self.asked.set()
                await asyncio.Event().wait()
            return await super().Write(request, context)

    async def scenario() -> None:
        stuck = Stuck()
        async with serving(stuck) as address, connected([address], star) as southbound:
            await asyncio.wait_for(southbound.caught_up(), PATIENCE_S)
            stuck.is_stuck = True
            await asyncio.wait_for(southbound.write({"s0": (rule,)}), PATIENCE_S)
            assert southbound.statuses()[0].condition is SwitchCondition.AWAY

    asyncio.run(scenario())


def test_a_switch_that_answers_a_read_without_end_is_refused_and_costs_little(star: Routing) -> None:
    class Endless(MemoryServer):
        num_messages = 0

        async def Read(self, _: Any, __: Any) -> AsyncIterator[p4r.ReadResponse]:  # noqa: N802
            message = p4r.ReadResponse(entities=[p4r.Entity()] * 100_000)
            while True:
                yield message
                self.num_messages += 1

    async def scenario() -> None:
        endless = Endless()
        async with serving(endless) as address, connected([address], star) as southbound:
            await until(lambda: "200,000 entries" in southbound.statuses()[0].problem)
            # gRPC sends some ahead of what is read.
            assert endless.num_messages < 50

    asyncio.run(scenario())


@pytest.mark.parametrize(
    "entity",
    [
        p4r.Entity(),
        p4r.Entity(table_entry=p4r.TableEntry(table_id=0x0200_0002, match=[p4r.FieldMatch(field_id=99)])),
        p4r.Entity(packet_replication_engine_entry=p4r.PacketReplicationEngineEntry()),
        p4r.Entity(digest_entry=p4r.DigestEntry(digest_id=7)),
    ],
)
def test_a_switch_that_answers_with_nonsense_has_a_line_and_no_traceback(
    star: Routing, entity: p4r.Entity, caplog: pytest.LogCaptureFixture
) -> None:
    class Nonsense(MemoryServer):
        async def Read(self, _: Any, __: Any) -> AsyncIterator[p4r.ReadResponse]:  # noqa: N802
            yield p4r.ReadResponse(entities=[entity])

    async def scenario() -> None:
        async with serving(Nonsense()) as address, connected([address], star) as southbound:
            await until(lambda: "none of the pipeline" in southbound.statuses()[0].problem)

    asyncio.run(scenario())
    assert all(record.exc_info is None for record in caplog.records if record.name.startswith("controller"))


def test_a_long_error_text_with_terminal_commands_becomes_one_short_line(star: Routing, rule: FlowRule) -> None:
    class Shouting(MemoryServer):
        is_shouting = False

        async def Write(self, request: Any, context: Any) -> p4r.WriteResponse:  # noqa: N802
            if self.is_shouting:
                await context.abort(grpc.StatusCode.INTERNAL, "\x1b[2Jgone\r\n" + "x" * 20_000)
            return await super().Write(request, context)

    async def scenario() -> None:
        shouting = Shouting()
        async with serving(shouting) as address, connected([address], star) as southbound:
            await asyncio.wait_for(southbound.caught_up(), PATIENCE_S)
            shouting.is_shouting = True
            with pytest.raises(SouthboundError) as refused:
                await southbound.write({"s0": (rule,)})
            for text in (str(refused.value), southbound.statuses()[0].problem):
                assert text.isprintable()
                assert "gone" in text
                assert len(text) < 600

    asyncio.run(scenario())


def test_error_details_that_contradict_the_request_are_a_refusal(star: Routing, rule: FlowRule) -> None:
    class Contradicting(MemoryServer):
        details: bytes | None = None

        async def Write(self, request: Any, context: Any) -> p4r.WriteResponse:  # noqa: N802
            if self.details is not None:
                trailer = (("grpc-status-details-bin", self.details),)
                await context.abort(grpc.StatusCode.UNKNOWN, "failed", trailer)
            return await super().Write(request, context)

    async def scenario() -> None:
        contradicting = Contradicting()
        failed = p4r.Error(canonical_code=5)
        too_many, unknown_code, no_error = (
            rpc_status.Status(code=2),
            rpc_status.Status(code=2),
            rpc_status.Status(code=99),
        )
        for _ in range(9):
            too_many.details.add().Pack(failed)
        unknown_code.details.add().Pack(p4r.Error(canonical_code=99))
        answers = [status.SerializeToString() for status in (too_many, unknown_code, no_error)]
        async with serving(contradicting) as address, connected([address], star) as southbound:
            await asyncio.wait_for(southbound.caught_up(), PATIENCE_S)
            for contradicting.details in (*answers, b"\xff\xff"):
                with pytest.raises(SouthboundError, match="'s0': its answer cannot be read"):
                    await southbound.write({"s0": (rule,)})

    asyncio.run(scenario())
