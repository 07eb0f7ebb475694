"""Measures the emulator's speed, load times and memory: ``python benchmarks/emulator.py [--json]``.

A packet-hop is one packet through one switch and the link behind it: the switch parses the packet, looks it up,
verifies and rewrites its checksum, counts, queues and deparses it. The work of hosts is included. The figure is the
median of five runs, in processor time of the engine's thread, on the paper's testbed Clos with 1,500-byte packets of
512 flows at 70 % load, half of them with a flow entry and half on ECMP. ``packet_hops_per_s_plain`` is the same load on
a minimal program, ``benchmarks/forwarding.p4``, which parses Ethernet and IPv4 and looks up the destination.
"""

import argparse
import os
import random
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from heapq import heapify, heapreplace
from ipaddress import IPv4Address
from pathlib import Path

# Run as a file, it finds the packages beside it.
sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from benchmarks.provenance import print_figures, provenance
from emulator.base_entries import install_routing, steer
from emulator.compiler.program import Program, compile_program
from emulator.entries import ActionCall, EntryKey, FieldMatch
from emulator.fabric import PS_PER_S, EmulatedFabric
from emulator.host_options import HostOptions
from hostlib import FiveTuple as HostFiveTuple
from hostlib.telemetry.probes import Mark, Probe, probe_packet
from p4src import PROGRAM
from topologies.addressing import UDP_PROTOCOL, FiveTuple
from topologies.ecmp import hash_multipliers
from topologies.fabric import Fabric
from topologies.routing import Routing
from topologies.specification import ClosSpecification

SEED = 1
ETHERNET = bytes(12) + b"\x08\x00"
RUNS = 5
FORWARDING = Path(__file__).with_name("forwarding.json")
MEASURED_HOPS = 2_000_000
NUM_FLOWS = 512
PROBE_BATCHES, PROBES_PER_BATCH = 100, 200
LOAD = 0.7
PAYLOAD_BYTES = 1458  # 1,500 bytes with the headers
TRANSFER_BYTES = 200 * PAYLOAD_BYTES

TESTBED = ClosSpecification(
    kind="clos",
    tors=6,
    aggs=8,
    hosts_per_tor=2,
    nics_per_host=8,
    host_link_gbps=800,
    uplink_gbps=100,
    uplinks_per_pair=2,
)
HOSTS_512 = ClosSpecification(kind="clos", tors=32, aggs=16, hosts_per_tor=16, host_link_gbps=100, uplink_gbps=100)
PARALLEL_TURNS, PARALLEL_TURN_PS, PARALLEL_TRANSFER_BYTES = 9, 100_000_000, 10_000_000
LARGE = ClosSpecification(
    kind="clos", tors=173, aggs=16, hosts_per_tor=2, nics_per_host=8, host_link_gbps=800, uplink_gbps=100
)


class Load:
    """512 flows that start transfers at regular times and keep the NICs busy for 70 % of the time.

    Every second flow is steered unless the switches' program cannot.
    """

    def __init__(self, fabric: Fabric, routing: Routing, emulated: EmulatedFabric, *, steers: bool = True) -> None:
        self._emulated = emulated
        chance = random.Random(SEED)
        nics = [nic for host in fabric.hosts for nic in fabric.nics[host]]
        self._flows = []
        for number in range(NUM_FLOWS):
            source = nics[number % len(nics)]
            tor = fabric.links[source.link].destination
            destination = chance.choice([nic for nic in nics if fabric.links[nic.link].destination != tor])
            five_tuple = FiveTuple(source.address, destination.address, UDP_PROTOCOL, 49152 + number, 4791)
            self._flows.append(emulated.add_flow(five_tuple))
            if steers and number % 2:
                path = chance.choice(routing.candidate_paths(source, destination))
                steer(emulated.switches[tor], five_tuple, fabric.links[path[1]].source_port, number // 2 % 8)
        rate_bps = fabric.links[nics[0].link].rate_bps
        self._period_ps = int(NUM_FLOWS / len(nics) * TRANSFER_BYTES * 8 / rate_bps / LOAD * PS_PER_S)
        self._starts = [(chance.randrange(self._period_ps), number) for number in range(NUM_FLOWS)]
        heapify(self._starts)
        self._busy: set[int] = set()

    def run(self, packet_hops: int) -> None:
        """Advance time by so many packet-hops."""
        target = self._emulated.packet_hops + packet_hops
        while self._emulated.packet_hops < target:
            time_ps, number = self._starts[0]
            self._busy.difference_update(completion.flow for completion in self._emulated.run(time_ps))
            if self._emulated.now_ps == time_ps:
                heapreplace(self._starts, (time_ps + self._period_ps, number))
                if self._flows[number] not in self._busy:  # else its last transfer is late: its link is overbooked
                    self._busy.add(self._flows[number])
                    self._emulated.start_transfer(self._flows[number], TRANSFER_BYTES)


def packet_hops_per_s() -> list[float]:
    """Return the speed of five runs, each after a warm-up that fills caches and queues."""
    fabric = TESTBED.build()
    routing = Routing(fabric, hash_multipliers(fabric.switches, SEED))
    program = compile_program(PROGRAM.read_text())
    figures = []
    for _ in range(RUNS):
        emulated = EmulatedFabric(fabric, program, HostOptions(mtu_bytes=PAYLOAD_BYTES))
        install_routing(emulated, routing)
        figures.append(_speed(Load(fabric, routing, emulated), emulated))
    return figures


def packet_hops_per_s_plain() -> list[float]:
    """Return the speed of five runs on the minimal program; every destination has one port per switch."""
    fabric = TESTBED.build()
    routing = Routing(fabric, hash_multipliers(fabric.switches, SEED))
    figures = []
    for _ in range(RUNS):
        emulated = forwarding_fabric(fabric, routing)
        figures.append(_speed(Load(fabric, routing, emulated, steers=False), emulated))
    return figures


def forwarding_fabric(fabric: Fabric, routing: Routing) -> EmulatedFabric:
    """Return a fabric that runs the minimal program, with entries for every NIC on every switch."""
    emulated = EmulatedFabric(fabric, compile_program(FORWARDING.read_text()), HostOptions(mtu_bytes=PAYLOAD_BYTES))
    for name, switch in emulated.switches.items():
        switch.clear()
        for number, nic in enumerate(nic for host in fabric.hosts for nic in fabric.nics[host]):
            links = routing.next_links(name, nic)
            port = fabric.links[links[number % len(links)]].source_port
            key = EntryKey((FieldMatch(nic.address, 0xFFFF_FFFF),))
            switch.insert("ingress.route", key, ActionCall("ingress.forward", (port,)))
    return emulated


def _speed(load: Load, emulated: EmulatedFabric) -> float:
    load.run(MEASURED_HOPS // 10)
    before, start_s = emulated.packet_hops, time.process_time()
    load.run(MEASURED_HOPS)
    return (emulated.packet_hops - before) / (time.process_time() - start_s)


def parallel_speedup() -> tuple[float, float, float]:
    """Return how much faster two cores are than one on 512 hosts, of which each sends to another: three figures.

    First by the wall clock, as it was: other work on the machine counts. Then by processor time: that of one core over
    that of the slower of two, waiting included. Then the bound by how evenly the work was spread. The two fabrics take
    turns, and the figures are medians of these turns. They must have done the same, to the byte.
    """
    fabric = HOSTS_512.build()
    routing = Routing(fabric, hash_multipliers(fabric.switches, SEED))
    program = compile_program(PROGRAM.read_text())
    serial, parallel = (_permutation(fabric, routing, program, cores) for cores in (1, 2))
    turns = []
    for turn in range(PARALLEL_TURNS + 1):
        until_ps = serial.now_ps + PARALLEL_TURN_PS
        hops, critical = parallel.packet_hops, parallel.critical_packet_hops
        one, two = (_timed(emulated, until_ps) for emulated in (serial, parallel))
        even = (parallel.packet_hops - hops) / (parallel.critical_packet_hops - critical)
        if turn:  # the first one fills caches and queues
            turns.append((one[0] / two[0], one[1] / two[1], even))
    assert serial.sent_bytes().tobytes() == parallel.sent_bytes().tobytes()
    assert serial.packet_hops == parallel.packet_hops
    wall, processor, even = (statistics.median(figures) for figures in zip(*turns, strict=True))
    return wall, processor, even


def _permutation(fabric: Fabric, routing: Routing, program: Program, cores: int) -> EmulatedFabric:
    """Return a fabric whose hosts begin to send to each other, each to one and without end."""
    emulated = EmulatedFabric(fabric, program, HostOptions(mtu_bytes=PAYLOAD_BYTES), cores=cores)
    install_routing(emulated, routing)
    nics = [fabric.nics[host][0] for host in fabric.hosts]
    receivers = random.Random(SEED).sample(nics, len(nics))
    for number, (source, destination) in enumerate(zip(nics, receivers, strict=True)):
        if source is not destination:
            five_tuple = FiveTuple(source.address, destination.address, UDP_PROTOCOL, 49152 + number, 4791)
            emulated.start_transfer(emulated.add_flow(five_tuple), PARALLEL_TRANSFER_BYTES)
    return emulated


def _timed(emulated: EmulatedFabric, until_ps: int) -> tuple[float, float]:
    """Advance; whoever has sent all begins anew. Return the seconds that it took, and those of the busiest thread."""
    before, start_s = _processor_s(emulated), time.perf_counter()
    while completions := emulated.run(until_ps):
        for completion in completions:
            emulated.start_transfer(completion.flow, PARALLEL_TRANSFER_BYTES)
    taken_s, after = time.perf_counter() - start_s, _processor_s(emulated)
    return taken_s, max(after[thread] - before.get(thread, 0.0) for thread in after)


def _processor_s(emulated: EmulatedFabric) -> dict[int, float]:
    """Return the processor time of every thread that runs a fabric, so far."""
    threads = (threading.get_native_id(), *emulated.thread_ids)
    return {thread: int(Path(f"/proc/self/task/{thread}/schedstat").read_text().split()[0]) / 1e9 for thread in threads}


def probe_hops_per_s() -> list[float]:
    """Return the speed on INT probes alone, which get 36 bytes of telemetry at every switch."""
    fabric = TESTBED.build()
    routing = Routing(fabric, hash_multipliers(fabric.switches, SEED))
    program = compile_program(PROGRAM.read_text())
    nics = [nic for host in fabric.hosts for nic in fabric.nics[host]]
    figures = []
    for run in range(RUNS):
        emulated = EmulatedFabric(fabric, program)
        install_routing(emulated, routing)
        chance = random.Random(SEED + run)
        taken_s = 0.0
        for _ in range(PROBE_BATCHES):
            for number in range(PROBES_PER_BATCH):
                source, destination = chance.sample(nics, 2)
                ends = IPv4Address(source.address), IPv4Address(destination.address)
                five_tuple = HostFiveTuple(*ends, UDP_PROTOCOL, 49152 + number, 4791)
                probe = Probe(five_tuple, number % 8, Mark(0, number, 0, 0))
                emulated.inject(source.link, ETHERNET + probe_packet(probe))
            start_s = time.process_time()
            emulated.run(emulated.now_ps + PS_PER_S // 100)
            taken_s += time.process_time() - start_s
        assert len(emulated.captured()) == PROBE_BATCHES * PROBES_PER_BATCH
        figures.append(emulated.packet_hops / taken_s)
    return figures


def load_times_s() -> tuple[float, float]:
    """Return the seconds from JSON to a running program in a fresh process, when compiled and when cached."""
    script = (
        "import time; start = time.perf_counter()\n"
        "from benchmarks.emulator import PROGRAM, TESTBED, compile_program, EmulatedFabric\n"
        "EmulatedFabric(TESTBED.build(), compile_program(PROGRAM.read_text())).run(1)\n"
        "print(time.perf_counter() - start)"
    )
    with tempfile.TemporaryDirectory() as folder:
        environment = os.environ | {"TRAINYARD_CACHE": folder}
        cold, cached = (
            float(
                subprocess.run([sys.executable, "-c", script], check=True, capture_output=True, env=environment).stdout
            )
            for _ in range(2)
        )
    return cold, cached


def large_clos() -> tuple[float, int]:
    """Return the seconds to build the Clos of 173 ToRs and 346 hosts with all routes, and the process's memory."""
    script = (
        "import resource, time\n"
        "from benchmarks.emulator import *\n"
        "program = compile_program(PROGRAM.read_text()); program.run\n"
        "start = time.perf_counter()\n"
        "fabric = LARGE.build(); routing = Routing(fabric, hash_multipliers(fabric.switches, SEED))\n"
        "emulated = EmulatedFabric(fabric, program); install_routing(emulated, routing); emulated.run(1)\n"
        "print(time.perf_counter() - start, 1024 * resource.getrusage(resource.RUSAGE_SELF).ru_maxrss)"
    )
    printed = subprocess.run([sys.executable, "-c", script], check=True, capture_output=True, text=True).stdout.split()
    return float(printed[0]), int(printed[1])


def main() -> None:
    """Measure and print the figures."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    arguments = parser.parse_args()
    runs = packet_hops_per_s()
    plain_runs = packet_hops_per_s_plain()
    probe_runs = probe_hops_per_s()
    speedup, processor_speedup, speedup_bound = parallel_speedup()
    load_cold_s, load_cached_s = load_times_s()
    clos_up_s, clos_memory_bytes = large_clos()
    figures = {
        "packet_hops_per_s": round(statistics.median(runs)),
        "packet_hops_per_s_runs": [round(figure) for figure in runs],
        "packet_hops_per_s_plain": round(statistics.median(plain_runs)),
        "int_probe_hops_per_s": round(statistics.median(probe_runs)),
        "parallel_speedup": round(speedup, 2),
        "parallel_speedup_processor_time": round(processor_speedup, 2),
        "parallel_speedup_bound": round(speedup_bound, 2),
        "load_cold_s": round(load_cold_s, 2),
        "load_cached_s": round(load_cached_s, 2),
        "clos_up_s": round(clos_up_s, 2),
        "clos_memory_bytes": clos_memory_bytes,
        "seed": SEED,
        **provenance(("llvmlite", "numpy")),
    }
    print_figures(figures, as_json=arguments.json)


if __name__ == "__main__":
    main()
