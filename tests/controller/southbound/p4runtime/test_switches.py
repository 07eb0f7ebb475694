"""The finsy side against a P4Runtime server in memory, over gRPC on loopback."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from typing import Any

import grpc.aio
import pytest
from finsy import P4Schema, P4TableEntry, P4TableMatch
from finsy.proto import gnmi, gnmi_grpc, p4r, p4r_grpc, rpc_status

from controller.config import ControllerConfig, SwitchAddress
from controller.rules.flow_rules import FlowRule
from controller.southbound.p4runtime.difference import state_of
from controller.southbound.p4runtime.entries import base_entries, flow_entry
from controller.southbound.p4runtime.switches import P4RuntimeSouthbound
from controller.southbound.southbound import SouthboundError, SwitchCondition
from p4src import P4INFO
from tests.patience import PATIENCE_S, until
from topologies.addressing import UDP_PROTOCOL, FiveTuple
from topologies.ecmp import hash_multipliers
from topologies.routing import Routing
from topologies.specification import GraphSpecification

ALREADY_EXISTS = 6
_SCHEMA = P4Schema(P4INFO)


class MemoryServer(p4r_grpc.P4RuntimeServicer):
    """One switch: grants every election id, holds every entity, refuses writes to the tables in ``full``."""

    def __init__(self) -> None:
        self.config = p4r.ForwardingPipelineConfig()
        self.entities: dict[bytes, p4r.Entity] = {}
        self.election_ids: list[int] = []
        self.num_pushes = 0
        self.updates: list[p4r.Update] = []
        self.full: set[int] = set()
        self.higher_bid = asyncio.Event()
        self.stop: Callable[[], Awaitable[None]] | None = None

    async def StreamChannel(self, requests: AsyncIterator[Any], _: Any) -> AsyncIterator[Any]:  # noqa: N802
        async for request in requests:
            self.election_ids.append(request.arbitration.election_id.high << 64 | request.arbitration.election_id.low)
            yield p4r.StreamMessageResponse(arbitration=request.arbitration)
            await self.higher_bid.wait()
            taken = p4r.MasterArbitrationUpdate()
            taken.CopyFrom(request.arbitration)
            taken.election_id.high += 1
            taken.status.code = ALREADY_EXISTS
            yield p4r.StreamMessageResponse(arbitration=taken)

    async def Capabilities(self, _: Any, __: Any) -> p4r.CapabilitiesResponse:  # noqa: N802
        return p4r.CapabilitiesResponse(p4runtime_api_version="1.3.0")

    async def GetForwardingPipelineConfig(self, _: Any, __: Any) -> p4r.GetForwardingPipelineConfigResponse:  # noqa: N802
        return p4r.GetForwardingPipelineConfigResponse(config=self.config)

    async def SetForwardingPipelineConfig(self, request: Any, _: Any) -> p4r.SetForwardingPipelineConfigResponse:  # noqa: N802
        self.config = request.config
        self.num_pushes += 1
        return p4r.SetForwardingPipelineConfigResponse()

    async def Read(self, request: Any, _: Any) -> AsyncIterator[p4r.ReadResponse]:  # noqa: N802
        for wanted in request.entities:
            kind = wanted.WhichOneof("entity")
            is_default = wanted.table_entry.is_default_action
            found = [
                entity
                for entity in self.entities.values()
                if entity.WhichOneof("entity") == kind and entity.table_entry.is_default_action == is_default
            ]
            yield p4r.ReadResponse(entities=found)

    async def Write(self, request: Any, context: Any) -> p4r.WriteResponse:  # noqa: N802
        for update in request.updates:
            if update.entity.table_entry.table_id in self.full:
                await context.abort(grpc.StatusCode.RESOURCE_EXHAUSTED, "the table is full")
            self.updates.append(update)
            if update.type == p4r.Update.DELETE:
                del self.entities[_identity(update.entity)]
            else:
                self.entities[_identity(update.entity)] = update.entity
        return p4r.WriteResponse()


def _identity(entity: p4r.Entity) -> bytes:
    """The entity without what it does."""
    named = p4r.Entity()
    named.CopyFrom(entity)
    match entity.WhichOneof("entity"):
        case "table_entry":
            named.table_entry.ClearField("action")
        case "action_profile_member":
            named.action_profile_member.ClearField("action")
        case "action_profile_group":
            named.action_profile_group.ClearField("members")
    return named.SerializeToString(deterministic=True)


@asynccontextmanager
async def _serving(
    memory: MemoryServer, address: str = "127.0.0.1:0", name: str = "s0"
) -> AsyncIterator[SwitchAddress]:
    server = grpc.aio.server()
    p4r_grpc.add_P4RuntimeServicer_to_server(memory, server)
    port = server.add_insecure_port(address)
    await server.start()
    memory.stop = lambda: server.stop(None)
    try:
        yield SwitchAddress(name=name, address=f"127.0.0.1:{port}", device_id=3)
    finally:
        await server.stop(None)


@pytest.fixture(scope="module")
def star() -> Routing:
    """Two hosts on one switch."""
    fabric = GraphSpecification.model_validate(
        {
            "kind": "graph",
            "hosts": ["h0", "h1"],
            "switches": ["s0"],
            "links": [{"ends": ["h0", "s0"], "gbps": 100}, {"ends": ["h1", "s0"], "gbps": 100}],
        }
    ).build()
    return Routing(fabric, hash_multipliers(fabric.switches, seed=1))


@pytest.fixture
def rule(star: Routing) -> FlowRule:
    source, destination = star.fabric.nics["h0"][0], star.fabric.nics["h1"][0]
    return FlowRule("s0", FiveTuple(source.address, destination.address, UDP_PROTOCOL, 49152, 4791), None, 6)


def _southbound(
    addresses: Sequence[SwitchAddress], routing: Routing, read_back_s: float | None = None
) -> P4RuntimeSouthbound:
    fields = ControllerConfig.model_fields
    pipeline, election_id = fields["pipeline"].default, fields["election_id"].default
    return P4RuntimeSouthbound(addresses, routing, pipeline, election_id, read_back_s=read_back_s)


def _lines(caplog: pytest.LogCaptureFixture) -> list[str]:
    """What the controller logs; the daemon turns off what finsy does."""
    return [record.getMessage() for record in caplog.records if record.name.startswith("controller")]


def test_second_controller_finds_everything_in_place(star: Routing, rule: FlowRule) -> None:
    async def scenario() -> None:
        memory = MemoryServer()
        async with _serving(memory) as address:
            async with _southbound([address], star) as first:
                await asyncio.wait_for(first.caught_up(), PATIENCE_S)
                await first.write({"s0": (rule,)})
            entities = state_of([*base_entries("s0", star), flow_entry(rule, star.fabric)])
            assert len(memory.entities) == len(entities)
            num_updates = len(memory.updates)
            async with _southbound([address], star) as second:
                await asyncio.wait_for(second.caught_up(), PATIENCE_S)
                await second.write({"s0": (rule,)})
            assert len(memory.updates) == num_updates
            assert memory.num_pushes == 1
            assert min(memory.election_ids) > 1 << 64
            async with _southbound([address], star) as third:
                await asyncio.wait_for(third.caught_up(), PATIENCE_S)
                await third.write({})
                assert len(memory.updates) == num_updates
                await third.forget_found()
            assert [update.type for update in memory.updates[num_updates:]] == [p4r.Update.DELETE]

    asyncio.run(scenario())


def test_refused_write_names_the_switch(star: Routing, rule: FlowRule) -> None:
    async def scenario() -> None:
        memory = MemoryServer()
        async with _serving(memory) as address, _southbound([address], star) as southbound:
            await asyncio.wait_for(southbound.caught_up(), PATIENCE_S)
            memory.full = {0x0200_0002}
            with pytest.raises(SouthboundError, match=r"'s0'.*full"):
                await southbound.write({"s0": (rule,)})

    asyncio.run(scenario())


def test_a_switch_that_refuses_keeps_no_other_from_its_rules() -> None:
    async def scenario() -> None:
        fabric = GraphSpecification.model_validate(
            {
                "kind": "graph",
                "hosts": ["h0", "h1"],
                "switches": ["s0", "s1"],
                "links": [{"ends": list(ends), "gbps": 100} for ends in (("h0", "s0"), ("s0", "s1"), ("s1", "h1"))],
            }
        ).build()
        routing = Routing(fabric, hash_multipliers(fabric.switches, seed=1))
        refusing, accepting = MemoryServer(), MemoryServer()
        async with (
            _serving(refusing, name="s0") as first,
            _serving(accepting, name="s1") as second,
            _southbound([first, second], routing) as southbound,
        ):
            await asyncio.wait_for(southbound.caught_up(), PATIENCE_S)
            refusing.full = {0x0200_0002}
            five_tuple = FiveTuple(1, 2, UDP_PROTOCOL, 3, 4)
            with pytest.raises(SouthboundError, match=r"'s0'.*full"):
                await southbound.write({name: (FlowRule(name, five_tuple, None, 6),) for name in ("s0", "s1")})
        assert len(accepting.entities) == len(base_entries("s1", routing)) + 1

    asyncio.run(scenario())


def test_switch_that_comes_late_is_caught_up(star: Routing, rule: FlowRule) -> None:
    async def scenario() -> None:
        memory = MemoryServer()
        async with _serving(memory) as address:
            southbound = _southbound([address], star)
            await southbound.write({"s0": (rule,)})
            assert memory.updates == []
            async with southbound:
                await asyncio.wait_for(southbound.caught_up(), PATIENCE_S)
        assert len(memory.entities) == len(base_entries("s0", star)) + 1

    asyncio.run(scenario())


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
        async with _serving(stuck) as address, _southbound([address], star) as southbound:
            await asyncio.wait_for(southbound.caught_up(), PATIENCE_S)
            stuck.is_stuck = True
            await asyncio.wait_for(southbound.write({"s0": (rule,)}), PATIENCE_S)
            assert southbound.statuses()[0].condition is SwitchCondition.AWAY

    asyncio.run(scenario())


def test_a_switch_whose_gnmi_goes_away_while_it_is_connected_to_is_tried_again(star: Routing) -> None:
    class Gnmi(gnmi_grpc.gNMIServicer):
        def __init__(self) -> None:
            self.num_asked = 0

        async def Get(self, _: Any, context: Any) -> gnmi.GetResponse:  # noqa: N802
            self.num_asked += 1
            is_first = self.num_asked == 1
            await context.abort(grpc.StatusCode.UNAVAILABLE if is_first else grpc.StatusCode.UNIMPLEMENTED)
            raise AssertionError

    async def scenario() -> None:
        ports = Gnmi()
        server = grpc.aio.server()
        p4r_grpc.add_P4RuntimeServicer_to_server(MemoryServer(), server)
        gnmi_grpc.add_gNMIServicer_to_server(ports, server)
        port = server.add_insecure_port("127.0.0.1:0")
        await server.start()
        address = SwitchAddress(name="s0", address=f"127.0.0.1:{port}", device_id=3)
        try:
            async with _southbound([address], star) as southbound:
                await asyncio.wait_for(southbound.caught_up(), PATIENCE_S)
                assert ports.num_asked == 2
        finally:
            await server.stop(None)

    asyncio.run(scenario())


def test_a_switch_that_restarts_empty_is_refilled(star: Routing, rule: FlowRule) -> None:
    async def scenario() -> None:
        before, restarted = MemoryServer(), MemoryServer()
        async with AsyncExitStack() as stack:
            address = await stack.enter_async_context(_serving(before))
            southbound = await stack.enter_async_context(_southbound([address], star))
            await asyncio.wait_for(southbound.caught_up(), PATIENCE_S)
            await southbound.write({"s0": (rule,)})
            assert before.stop is not None
            await before.stop()
            await stack.enter_async_context(_serving(restarted, address.address))
            async with asyncio.timeout(PATIENCE_S):
                while restarted.entities != before.entities:
                    await asyncio.sleep(0.02)
            assert restarted.num_pushes == 1
            await asyncio.wait_for(southbound.caught_up(), PATIENCE_S)
            assert restarted.stop is not None
            await restarted.stop()
            await asyncio.wait_for(southbound.caught_up(down=["s0"]), PATIENCE_S)
            with pytest.raises(TimeoutError):
                await asyncio.wait_for(southbound.caught_up(), 0.01)

    asyncio.run(scenario())


def test_a_switch_that_a_higher_bidder_takes_is_an_error_and_not_fought_over(star: Routing, rule: FlowRule) -> None:
    async def scenario() -> None:
        memory = MemoryServer()
        async with _serving(memory) as address, _southbound([address], star) as southbound:
            await asyncio.wait_for(southbound.caught_up(), PATIENCE_S)
            num_bids, num_updates = len(memory.election_ids), len(memory.updates)
            memory.higher_bid.set()
            async with asyncio.timeout(PATIENCE_S):
                while southbound.statuses()[0].condition is not SwitchCondition.LOST:
                    await asyncio.sleep(0.02)
            await southbound.write({"s0": (rule,)})
            assert "election id" in southbound.statuses()[0].problem
            with pytest.raises(SouthboundError, match=r"'s0': lost to another controller"):
                await asyncio.wait_for(southbound.caught_up(), PATIENCE_S)
            assert (len(memory.election_ids), len(memory.updates)) == (num_bids, num_updates)

    asyncio.run(scenario())


def test_entries_that_somebody_deletes_changes_and_adds_are_repaired_counted_and_logged(
    star: Routing, rule: FlowRule, caplog: pytest.LogCaptureFixture
) -> None:
    async def scenario() -> None:
        memory = MemoryServer()
        async with _serving(memory) as address, _southbound([address], star, read_back_s=0.1) as southbound:
            await asyncio.wait_for(southbound.caught_up(), PATIENCE_S)
            await southbound.write({"s0": (rule,)})
            held = dict(memory.entities)
            (flow,) = (octets for octets, entity in held.items() if entity.table_entry.table_id == 0x0200_0002)
            foreign = p4r.Entity()
            foreign.CopyFrom(memory.entities.pop(flow))
            foreign.table_entry.match[0].exact.value = b"\x0b"
            memory.entities[_identity(foreign)] = foreign
            operators = P4TableEntry("job", match=P4TableMatch(source_address=(1, 1)), priority=7).encode(_SCHEMA)
            memory.entities[_identity(operators)] = operators
            held[_identity(operators)] = operators
            await until(lambda: memory.entities == held)
            await until(lambda: southbound.statuses()[0].drifted == 2)
            await until(lambda: len(_lines(caplog)) == 1)
            assert _lines(caplog) == ["switch s0: drift repaired: 1 missing, 0 changed and 1 foreign entries"]
            await asyncio.sleep(0.3)
            assert southbound.statuses()[0].drifted == 2

    asyncio.run(scenario())


def test_a_dead_address_a_lost_switch_and_its_return_are_logged_and_shown(
    star: Routing, caplog: pytest.LogCaptureFixture
) -> None:
    async def scenario() -> None:
        memory = MemoryServer()
        async with AsyncExitStack() as stack:
            address = await stack.enter_async_context(_serving(memory))
            southbound = await stack.enter_async_context(_southbound([address], star))
            await asyncio.wait_for(southbound.caught_up(), PATIENCE_S)
            assert _lines(caplog) == []
            assert memory.stop is not None
            await memory.stop()
            await until(lambda: len(_lines(caplog)) == 1)
            assert _lines(caplog)[0].startswith(f"switch s0 at {address.address}: away since ")
            assert "UNAVAILABLE" in _lines(caplog)[0]
            status = southbound.statuses()[0]
            assert (status.condition, "UNAVAILABLE" in status.problem) == (SwitchCondition.AWAY, True)
            assert status.changed_ago_s < PATIENCE_S
            await stack.enter_async_context(_serving(MemoryServer(), address.address))
            await until(lambda: len(_lines(caplog)) == 2)
            assert _lines(caplog)[1].startswith(f"switch s0 at {address.address}: reached, after ")
            assert southbound.statuses()[0].problem == ""

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
        async with _serving(endless) as address, _southbound([address], star) as southbound:
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
        async with _serving(Nonsense()) as address, _southbound([address], star) as southbound:
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
        async with _serving(shouting) as address, _southbound([address], star) as southbound:
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
        async with _serving(contradicting) as address, _southbound([address], star) as southbound:
            await asyncio.wait_for(southbound.caught_up(), PATIENCE_S)
            for contradicting.details in (*answers, b"\xff\xff"):
                with pytest.raises(SouthboundError, match="'s0': its answer cannot be read"):
                    await southbound.write({"s0": (rule,)})

    asyncio.run(scenario())
