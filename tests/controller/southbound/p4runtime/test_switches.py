"""The finsy side against a P4Runtime server in memory, over gRPC on loopback."""

import asyncio
from contextlib import AsyncExitStack
from typing import Any

import grpc.aio
import pytest
from finsy import P4Schema, P4TableEntry, P4TableMatch
from finsy.proto import gnmi, gnmi_grpc, p4r, p4r_grpc

from controller.rules.flow_rules import FlowRule
from controller.southbound.p4runtime.entries import base_entries, flow_entry
from controller.southbound.p4runtime.states import state_of
from controller.southbound.southbound import SouthboundError, SwitchCondition
from controller.switch_addresses import SwitchAddress
from p4src import P4INFO
from tests.controller.southbound.p4runtime.memory_server import MemoryServer, connected, identity, lines, serving
from tests.patience import PATIENCE_S, until
from tests.ports import free_port
from topologies.addressing import UDP_PROTOCOL, FiveTuple
from topologies.ecmp import hash_multipliers
from topologies.routing import Routing
from topologies.specification import GraphSpecification

_SCHEMA = P4Schema(P4INFO)


def test_second_controller_finds_everything_in_place(star: Routing, rule: FlowRule) -> None:
    async def scenario() -> None:
        memory = MemoryServer()
        async with serving(memory) as address:
            async with connected([address], star) as first:
                await asyncio.wait_for(first.caught_up(), PATIENCE_S)
                await first.write({"s0": (rule,)})
            entities = state_of([*base_entries("s0", star), flow_entry(rule, star.fabric)])
            assert len(memory.entities) == len(entities)
            num_updates = len(memory.updates)
            async with connected([address], star) as second:
                await asyncio.wait_for(second.caught_up(), PATIENCE_S)
                await second.write({"s0": (rule,)})
            assert len(memory.updates) == num_updates
            assert memory.num_pushes == 1
            assert min(memory.election_ids) > 1 << 64
            async with connected([address], star) as third:
                await asyncio.wait_for(third.caught_up(), PATIENCE_S)
                await third.write({})
                assert len(memory.updates) == num_updates
                await third.forget_found()
            assert [update.type for update in memory.updates[num_updates:]] == [p4r.Update.DELETE]

    asyncio.run(scenario())


def test_refused_write_names_the_switch(star: Routing, rule: FlowRule) -> None:
    async def scenario() -> None:
        memory = MemoryServer()
        async with serving(memory) as address, connected([address], star) as southbound:
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
            serving(refusing, name="s0") as first,
            serving(accepting, name="s1") as second,
            connected([first, second], routing) as southbound,
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
        async with serving(memory) as address:
            southbound = connected([address], star)
            await southbound.write({"s0": (rule,)})
            assert memory.updates == []
            async with southbound:
                await asyncio.wait_for(southbound.caught_up(), PATIENCE_S)
        assert len(memory.entities) == len(base_entries("s0", star)) + 1

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
            async with connected([address], star) as southbound:
                await asyncio.wait_for(southbound.caught_up(), PATIENCE_S)
                assert ports.num_asked == 2
        finally:
            await server.stop(None)

    asyncio.run(scenario())


def test_a_switch_that_restarts_empty_is_refilled(star: Routing, rule: FlowRule) -> None:
    async def scenario() -> None:
        before, restarted = MemoryServer(), MemoryServer()
        async with AsyncExitStack() as stack:
            address = await stack.enter_async_context(serving(before, f"127.0.0.1:{free_port()}"))
            southbound = await stack.enter_async_context(connected([address], star))
            await asyncio.wait_for(southbound.caught_up(), PATIENCE_S)
            await southbound.write({"s0": (rule,)})
            assert before.stop is not None
            await before.stop()
            await stack.enter_async_context(serving(restarted, address.address))
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
        async with serving(memory) as address, connected([address], star) as southbound:
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
        async with serving(memory) as address, connected([address], star, read_back_s=0.1) as southbound:
            await asyncio.wait_for(southbound.caught_up(), PATIENCE_S)
            await southbound.write({"s0": (rule,)})
            held = dict(memory.entities)
            (flow,) = (octets for octets, entity in held.items() if entity.table_entry.table_id == 0x0200_0002)
            foreign = p4r.Entity()
            foreign.CopyFrom(memory.entities.pop(flow))
            foreign.table_entry.match[0].exact.value = b"\x0b"
            memory.entities[identity(foreign)] = foreign
            operators = P4TableEntry("job", match=P4TableMatch(source_address=(1, 1)), priority=7).encode(_SCHEMA)
            memory.entities[identity(operators)] = operators
            held[identity(operators)] = operators
            await until(lambda: memory.entities == held)
            await until(lambda: southbound.statuses()[0].drifted == 2)
            await until(lambda: len(lines(caplog)) == 1)
            assert lines(caplog) == ["switch s0: drift repaired: 1 missing, 0 changed and 1 foreign entries"]
            await asyncio.sleep(0.3)
            assert southbound.statuses()[0].drifted == 2

    asyncio.run(scenario())


def test_a_dead_address_a_lost_switch_and_its_return_are_logged_and_shown(
    star: Routing, caplog: pytest.LogCaptureFixture
) -> None:
    async def scenario() -> None:
        memory = MemoryServer()
        async with AsyncExitStack() as stack:
            address = await stack.enter_async_context(serving(memory))
            southbound = await stack.enter_async_context(connected([address], star))
            await asyncio.wait_for(southbound.caught_up(), PATIENCE_S)
            assert lines(caplog) == []
            assert memory.stop is not None
            await memory.stop()
            await until(lambda: len(lines(caplog)) == 1)
            assert lines(caplog)[0].startswith(f"switch s0 at {address.address}: away since ")
            assert "UNAVAILABLE" in lines(caplog)[0]
            status = southbound.statuses()[0]
            assert (status.condition, "UNAVAILABLE" in status.problem) == (SwitchCondition.AWAY, True)
            assert status.changed_ago_s < PATIENCE_S
            await stack.enter_async_context(serving(MemoryServer(), address.address))
            await until(lambda: len(lines(caplog)) == 2)
            assert lines(caplog)[1].startswith(f"switch s0 at {address.address}: reached, after ")
            assert southbound.statuses()[0].problem == ""

    asyncio.run(scenario())
