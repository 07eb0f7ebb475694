"""Packets through a fat-tree with made-up names, addresses and ports, one switch after the other: BMv2 and emulator.

Every switch gets the entries that the controller would write to it, by P4Runtime.
"""

from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from itertools import permutations
from pathlib import Path
from random import Random

import pytest
from finsy import P4Schema
from finsy.proto import p4i, p4r

from controller.rules.flow_rules import FlowRule
from controller.southbound.p4runtime.encoding import Encoder
from controller.southbound.p4runtime.entries import base_entries, flow_entry
from controller.southbound.p4runtime.states import difference, state_of
from emulator.fabric import EmulatedFabric
from emulator.p4runtime.pipeline import compiled_pipeline
from emulator.p4runtime.target import Target
from emulator.p4runtime.write import write_batch
from p4src import P4INFO, PROGRAM
from tests.bmv2.live import VARIABLE, find_bmv2, running
from tests.bmv2.session import Packet, Switch
from tests.emulator.fabrics import five_tuple
from tests.emulator.packets import ipv4_packet
from tests.emulator.programs import trainyard
from tests.topologies.made_up import made_up
from topologies.addressing import FiveTuple
from topologies.ecmp import hash_multipliers
from topologies.fabric import Cable, Fabric
from topologies.fat_tree import FatTreeSpecification
from topologies.routing import Routing

ENCODER = Encoder(P4Schema(Path(P4INFO)))
FABRIC = made_up(
    FatTreeSpecification(kind="fat_tree", k=4, host_link_gbps=100, uplink_gbps=100).build(), Random(4)
).specification.build()
LEVELS = (0, 1, 4, 7)

SwitchWith = Callable[[Sequence[int]], Switch]
"""Returns an empty switch with these ports."""


class EmulatedSwitch:
    """A switch of the emulator, with a host at each of its ports."""

    def __init__(self, ports: Sequence[int]) -> None:
        hosts = tuple(f"host{port}" for port in ports)
        cables = tuple(Cable((host, "s"), 1e11, 0.0, (0, port)) for host, port in zip(hosts, ports, strict=True))
        self._emulated = EmulatedFabric(Fabric(hosts, ("s",), cables, gpus_per_host=1), trainyard())
        self._links = {link.destination_port: link for link in self._emulated.fabric.links if link.destination == "s"}
        self._pipeline = compiled_pipeline(P4INFO.read_text(), PROGRAM.read_bytes())
        self.clear()

    @property
    def p4info(self) -> p4i.P4Info:
        return self._pipeline.message.p4info

    def clear(self) -> None:
        self._emulated.switches["s"].clear()
        self._target = Target(self._emulated.switches["s"], self._pipeline)

    def write(self, updates: list[p4r.Update]) -> None:
        write_batch(self._target, updates)

    def read(self, *requests: p4r.Entity) -> list[p4r.Entity]:
        raise NotImplementedError

    def send(self, packet: Packet) -> list[Packet]:
        self._emulated.inject(self._links[packet.port].index, packet.octets)
        self._emulated.run(self._emulated.now_ps + 10**9)
        links = self._emulated.fabric.links
        return [Packet(links[each.link].source_port, each.octets) for each in self._emulated.captured()]


@contextmanager
def _emulator() -> Iterator[SwitchWith]:
    yield EmulatedSwitch


@contextmanager
def _bmv2() -> Iterator[SwitchWith]:
    command = find_bmv2()
    if command is None:
        pytest.skip(
            f"simple_switch_grpc is not on PATH and {VARIABLE} does not name it: that packets through BMv2s arrive in a"
            " fabric with made-up addresses and ports is not checked here; that they do in the emulator is"
        )
    with running(command) as bmv2:
        yield lambda _ports: bmv2


def _write(switch: Switch, name: str, routing: Routing, flows: Sequence[tuple[FiveTuple, int]]) -> None:
    """Write what the controller would: base routing, and a rule for each flow of a level that starts here."""
    first = {nic.address for nics in FABRIC.nics.values() for nic in nics if FABRIC.links[nic.link].destination == name}
    rules = [FlowRule(name, flow, None, level) for flow, level in flows if level and flow.source_address in first]
    entries = base_entries(name, routing) + [flow_entry(rule, FABRIC) for rule in rules]
    switch.clear()
    for stage in difference({}, state_of(entries)):
        switch.write([ENCODER.update(update) for update in stage])


@pytest.mark.slow
@pytest.mark.parametrize("switches", [_emulator, _bmv2])
def test_every_pair_of_hosts_reaches_each_other_at_every_level(
    switches: Callable[[], AbstractContextManager[SwitchWith]],
) -> None:
    routing = Routing(FABRIC, hash_multipliers(FABRIC.switches, seed=1))
    flows = [
        (five_tuple(FABRIC, *ends, 49152 + number), LEVELS[number % len(LEVELS)])
        for number, ends in enumerate(permutations(FABRIC.hosts, 2))
    ]
    paths = [[FABRIC.nic_by_address[flow.source_address].link] for flow, _ in flows]
    under_way = dict(enumerate(ipv4_packet(flow) for flow, _ in flows))
    with switches() as switch_with:
        while under_way:
            at: dict[str, list[int]] = {}
            for number in under_way:
                at.setdefault(FABRIC.links[paths[number][-1]].destination, []).append(number)
            for name, numbers in at.items():
                if name in FABRIC.host_index:
                    for number in numbers:
                        flow, level = flows[number]
                        octets = under_way.pop(number)
                        nic = FABRIC.nic_by_address[flow.destination_address]
                        assert (name, octets[:6], octets[15] >> 5) == (nic.host, nic.mac.packed, level)
                        assert tuple(paths[number]) == routing.hashed_path(flow)
                    continue
                links = {link.source_port: link for link in FABRIC.links_from[name]}
                switch = switch_with([*links])
                _write(switch, name, routing, flows)
                for number in numbers:
                    (sent,) = switch.send(Packet(FABRIC.links[paths[number][-1]].destination_port, under_way[number]))
                    under_way[number] = sent.octets
                    paths[number].append(links[sent.port].index)
