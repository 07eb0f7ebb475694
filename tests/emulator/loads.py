"""Fabrics and loads drawn at random, and all that can be seen of a fabric that has carried one.

Rates and delays are few, so that much happens at once.
"""

from collections.abc import Iterator
from dataclasses import asdict
from ipaddress import IPv4Address
from pathlib import Path
from random import Random
from typing import Any

from emulator.compiler.program import Program
from emulator.entries import SwitchError
from emulator.fabric import EmulatedFabric
from emulator.host_options import HostOptions
from emulator.replication import Replica, Replication, Replicator
from hostlib import FiveTuple as HostFiveTuple
from hostlib.telemetry.probes import Mark, Probe, probe_packet
from tests.bmv2.replication_sessions import GROUP, SESSION, request
from tests.emulator.fabrics import flow_key, prioritise, routing_of, write_entries
from topologies.addressing import UDP_PROTOCOL, FiveTuple
from topologies.fabric import Cable, Fabric

NUM_STEPS = 40
END_PS = 3_000_000_000
_ETHERNET = bytes(12) + b"\x08\x00"
_STEP_PS = (0, 1, 1_000_000, 3_700_000, 40_000_000, 80_000_000)


def drawn_fabric(random: Random) -> Fabric:
    """Five to ten switches, each with up to three hosts of one or two NICs, which may lead to two switches."""
    switches = tuple(f"s{number}" for number in range(random.randint(5, 10)))
    delays_s, rates_bps = random.choice([(1e-6,), (1e-6, 3e-7, 13e-9)]), random.choice([(1e11,), (1e11, 2.5e10)])

    def cable(*ends: str) -> Cable:
        return Cable((ends[0], ends[1]), random.choice(rates_bps), random.choice(delays_s))

    cables, hosts = [], []
    for number, switch in enumerate(switches[1:], start=1):
        cables.append(cable(random.choice(switches[:number]), switch))
    for _ in range(len(switches)):
        cables.append(cable(*random.sample(switches, 2)))
    for number, switch in enumerate(switches):
        for _ in range(random.randint(0 if number > 1 else 1, 3)):
            hosts.append(f"h{len(hosts)}")
            cables += [cable(hosts[-1], switch)]
            cables += [cable(hosts[-1], random.choice(switches))] if random.random() < 0.3 else []
    return Fabric(tuple(hosts), switches, tuple(cables), 1)


class Load:
    """Does the same things to a fabric, of any number of cores, for the same seed; ``seen`` is what came of it."""

    def __init__(
        self,
        seed: int,
        fabric: Fabric,
        program: Program,
        cores: int,
        *,
        is_routed: bool = True,
        record_into: Path | None = None,
    ) -> None:
        self._random = random = Random(seed)
        options = HostOptions(mtu_bytes=random.choice([1000, 4096]), window_packets=random.choice([4, 20, 62]))
        limit_bytes, trace_rows = random.choice([9_000, 60_000, 16_000_000]), random.choice([0, 5000])
        self.emulated = EmulatedFabric(
            fabric, program, options, queue_limit_bytes=limit_bytes, trace_rows=trace_rows, cores=cores
        )
        if record_into is not None:
            self.emulated.record_packets(record_into)
        self._routing = routing_of(fabric) if is_routed else None
        self._flows: list[tuple[int, FiveTuple]] = []
        self._idle: set[int] = set()
        self._down: set[str] = set()
        self._steered: list[FiveTuple] = []
        self.seen: list[Any] = []
        self._nics = [nic for host in fabric.hosts for nic in fabric.nics[host]]
        for switch in self.emulated.switches:
            self._set_up(switch)

    def carry_out(self) -> list[Any]:
        """Do all of it; return what has been seen."""
        for _ in range(NUM_STEPS):
            for _ in range(self._random.randint(1, 6)):
                self._random.choice(self._kinds())()
            self._run(self.emulated.now_ps + self._random.choice(_STEP_PS))
        self._run(END_PS)
        self.seen += self._everything()
        return self.seen

    def _kinds(self) -> list[Any]:
        rare = [self._switch_link, self._switch_port, self._switch_switch, self._packet_out]
        if self._routing is None:
            return [self._ask, self._ask, self._ask, self._ask, *rare]
        return [self._open, self._open, self._send, self._send, self._send, self._probe, self._steer, *rare]

    def _run(self, until_ps: int) -> None:
        """Advance; for a while somebody answers each transfer with one more at once."""
        while done := self.emulated.run(until_ps):
            self.seen += [*done, self.emulated.now_ps]
            for completion in done:
                self._idle.add(completion.flow)
                self.seen.append(self.emulated.progress(completion.flow))
            if self._random.random() < 0.7 and self.emulated.now_ps < END_PS // 2:
                self._send()
            if self._random.random() < 0.2:
                self.seen.append(self.emulated.queued_bytes().tobytes())
        assert self.emulated.now_ps == until_ps
        self.seen += [self.emulated.next_event_ps, self.emulated.packets_in(), self.emulated.captured()]

    def _everything(self) -> Iterator[Any]:
        emulated = self.emulated
        yield from (emulated.take_trace(), emulated.packet_hops, emulated.misdelivered, asdict(emulated.host_drops()))
        yield from (asdict(emulated.drops(switch)) for switch in emulated.switches)
        yield from ((emulated.progress(flow), emulated.retransmissions(flow)) for flow, _ in self._flows)
        yield from (emulated.sent_bytes().tobytes(), emulated.queued_bytes().tobytes())
        yield emulated._arena.words.tobytes()  # entries, counters, registers, meters, random sequences

    # ---- what happens -----------------------------------------------------------------------------------------------

    def _set_up(self, switch: str) -> None:
        control = self.emulated.switches[switch]
        control.clear()
        if self._routing is not None:
            write_entries(control, self._routing)
            return
        ports = [*control.ports, 510]
        for kind, number in ((Replicator.GROUP, GROUP), (Replicator.SESSION, SESSION)):
            replicas = tuple(Replica(self._random.choice(ports), instance) for instance in range(2))
            control.replication(kind).insert(number, Replication(replicas))

    def _open(self) -> None:
        source, destination = self._random.sample(self._nics, 2)
        five_tuple = FiveTuple(
            source.address, destination.address, UDP_PROTOCOL, 49152 + self._random.randrange(9999), 4791
        )
        flow = self.emulated.add_flow(five_tuple)
        self.emulated.set_flow_level(flow, self._random.randrange(8))
        self._flows.append((flow, five_tuple))
        self._idle.add(flow)

    def _send(self) -> None:
        if self._idle:
            flow = self._random.choice(sorted(self._idle))
            self._idle.remove(flow)
            self.emulated.start_transfer(flow, self._random.choice([1, 5_000, 100_000, 400_000]))

    def _probe(self) -> None:
        source, destination = self._random.sample(self._nics, 2)
        ends = IPv4Address(source.address), IPv4Address(destination.address)
        probe = Probe(HostFiveTuple(*ends, UDP_PROTOCOL, 50000, 4791), self._random.randrange(8), Mark(0, 1, 0, 0))
        link = self._random.choice([source.link, self._random.choice(self.emulated.fabric.links).index])
        for _ in range(self._random.randint(1, 5)):
            self.emulated.inject(link, _ETHERNET + probe_packet(probe))

    def _ask(self) -> None:
        link = self._random.choice(self.emulated.fabric.links)
        for _ in range(self._random.randint(1, 3)):
            octets = request(
                self._random.randrange(128), value=self._random.randrange(256), port=self._random.randint(1, 6),
                payload=self._random.randbytes(self._random.randrange(60)),
            )  # fmt: skip
            self.emulated.inject(link.index, octets, len(octets) + self._random.choice([0, 1000]))

    def _steer(self) -> None:
        """Write an entry for a flow at its first switch, or delete one."""
        if not self._flows:
            return
        _, five_tuple = self._random.choice(self._flows)
        fabric = self.emulated.fabric
        switch = fabric.links[fabric.nic_by_address[five_tuple.source_address].link].destination
        try:
            if five_tuple in self._steered:
                self.emulated.switches[switch].delete("ingress.flow", flow_key(five_tuple))
            else:
                prioritise(self.emulated, five_tuple, self._random.randrange(8))
                self._steered.append(five_tuple)
        except SwitchError as error:  # the switch was down meanwhile
            self.seen.append(str(error))

    def _switch_link(self) -> None:
        link = self._random.choice(self.emulated.fabric.links).index
        self.emulated.set_link(link, up=not self.emulated.is_up(link) or self._random.random() < 0.3)

    def _switch_port(self) -> None:
        switch = self._random.choice(self.emulated.fabric.switches)
        port = self._random.choice(self.emulated.fabric.links_from[switch]).source_port
        self.emulated.set_port(switch, port, enabled=self._random.random() < 0.7)

    def _switch_switch(self) -> None:
        if self._down:
            switch = self._down.pop()
            self.emulated.set_switch(switch, up=True)
            self._set_up(switch)
        elif self._random.random() < 0.3:
            switch = self._random.choice(self.emulated.fabric.switches)
            self.emulated.set_switch(switch, up=False)
            self._down.add(switch)

    def _packet_out(self) -> None:
        self.emulated.packet_out(self._random.choice(self.emulated.fabric.switches), self._random.randbytes(64))
