"""The P4 program in the emulator, given the same Plan, sends packets the same ways at the same levels."""

from functools import cache
from random import Random

import pytest
from finsy import P4Schema
from finsy.proto import p4r
from hypothesis import given, settings
from hypothesis import strategies as st

from controller.rules.job_rules import JobRule
from controller.southbound.p4runtime.entries import base_entries, flow_entry, job_entry
from emulator.compiler.program import Program, compile_program
from emulator.fabric import PS_PER_S, EmulatedFabric
from emulator.observations import TraceKind
from emulator.p4runtime.pipeline import Pipeline, compiled_pipeline
from emulator.p4runtime.target import Target
from emulator.p4runtime.write import write_batch
from p4src import P4INFO, PROGRAM
from tests.controller.southbound.openflow.interpreter import walks
from tests.controller.southbound.openflow.planned import Decided, other_flow, packet_of, route
from tests.p4src.packets import Ipv4
from tests.topologies.builders import DOUBLE_SIDED, fabrics
from topologies.addressing import FiveTuple
from topologies.fabric import Fabric, Path
from topologies.openflow_specification import Queues


@cache
def _program() -> Program:
    return compile_program(PROGRAM.read_text())


@cache
def _schema() -> P4Schema:
    return P4Schema(P4INFO)


@cache
def _pipeline() -> Pipeline:
    return compiled_pipeline(P4INFO.read_text(), PROGRAM.read_bytes())


class P4Fabric:
    """Emulated switches that hold the P4Runtime entries of a Plan."""

    def __init__(self, decided: Decided) -> None:
        self._fabric = decided.routing.fabric
        self._emulated = EmulatedFabric(self._fabric, _program(), trace_rows=1000)
        for name, rules in decided.rules().items():
            switch = self._emulated.switches[name]
            switch.clear()
            entities = base_entries(name, decided.routing) + [
                job_entry(rule) if isinstance(rule, JobRule) else flow_entry(rule, self._fabric) for rule in rules
            ]
            encoded = [entity.encode(_schema()) for entity in entities]
            updates = [
                p4r.Update(
                    type=p4r.Update.MODIFY if each.table_entry.is_default_action else p4r.Update.INSERT, entity=each
                )
                for each in encoded
            ]
            write_batch(Target(switch, _pipeline()), updates)

    def sent(self, flow: FiveTuple, dscp: int) -> tuple[Path, list[int], bytes]:
        """Send a packet; return its path, its level behind each switch, and what has arrived."""
        link = self._fabric.nic_by_address[flow.source_address].link
        packet = Ipv4(
            source=flow.source_address,
            destination=flow.destination_address,
            protocol=flow.protocol,
            source_port=flow.source_port,
            destination_port=flow.destination_port,
            dscp=dscp,
        )
        self._emulated.inject(link, packet.octets())
        self._emulated.run(self._emulated.now_ps + PS_PER_S // 100)
        started = [row for row in self._emulated.take_trace() if row.kind is TraceKind.STARTED]
        (arrived,) = self._emulated.captured()
        return (link, *(row.link for row in started)), [row.level for row in started], arrived.octets


def check_same(decided: Decided, random: Random) -> int:
    """Send packets of all flows; return how many had only one way."""
    fabric = decided.routing.fabric
    p4, switches = P4Fabric(decided), decided.switches(Queues.SET_QUEUE)
    nobody_down: dict[str, set[int]] = {switch: set() for switch in switches}
    num_sure = 0
    for registered in decided.flows:
        for flow in (registered.five_tuple, other_flow(registered.five_tuple)):
            dscp = random.randrange(0, 64, 2)
            path, levels, arrived = p4.sent(flow, dscp)
            packet = packet_of(flow, dscp)
            ways = {
                walk.path: walk
                for walk in walks(switches, fabric, packet, fabric.nic_by_address[packet.source], nobody_down)
            }
            num_sure += len(ways) == 1
            walk = ways[path]
            assert [hop.queue for hop in walk.hops] == levels
            last = walk.hops[-1].packet
            assert last.destination_mac.to_bytes(6, "big") + last.source_mac.to_bytes(6, "big") == arrived[:12]
            assert (arrived[15] >> 5, arrived[22]) == (last.dscp >> 3, last.time_to_live)
    return num_sure


@pytest.mark.slow
@settings(max_examples=20)
@given(fabrics, st.integers(0, 1 << 32).map(Random))
def test_ways_and_levels_are_the_same(fabric: Fabric, random: Random) -> None:
    check_same(Decided(route(fabric), random), random)


@pytest.mark.parametrize("seed", range(3))
def test_ways_and_levels_are_the_same_where_hosts_have_two_tors(seed: int) -> None:
    random = Random(seed)
    decided = Decided(route(DOUBLE_SIDED), random, num_flows=20)
    steered = [flow for flow in decided.flows if decided.plan.flows[flow.key].path is not None]
    assert check_same(decided, random) >= len(steered)
