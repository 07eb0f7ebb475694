"""A fabric on several cores does, to the byte, what it does on one."""

import gc
import subprocess
import sys
import threading
import time
from collections import Counter
from functools import cache
from pathlib import Path
from random import Random

import pytest

from emulator import tails
from emulator.compiler.program import Program, compile_program
from emulator.engine.events import END_PS
from emulator.fabric import EmulatedFabric
from emulator.partition import partition
from tests.bmv2.small_programs import REPLICATION
from tests.emulator.fabrics import routing_of, write_entries
from tests.emulator.loads import Load, drawn_fabric
from tests.emulator.packets import ipv4_packet
from tests.emulator.programs import trainyard
from tests.patience import PATIENCE_S
from topologies.addressing import UDP_PROTOCOL, FiveTuple
from topologies.fabric import Cable, Fabric
from topologies.specification import FatTreeSpecification


@cache
def replication() -> Program:
    """The program that copies packets."""
    return compile_program(REPLICATION.json.read_text())


@pytest.mark.parametrize("seed", range(8))
def test_hosts_and_switches_do_the_same_on_any_number_of_cores(seed: int) -> None:
    fabric = drawn_fabric(Random(seed))
    serial = Load(seed, fabric, trainyard(), 1).carry_out()
    for cores in (2, 3, 4):
        assert Load(seed, fabric, trainyard(), cores).carry_out() == serial


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(8))
def test_copies_do_the_same_on_any_number_of_cores(seed: int) -> None:
    fabric = drawn_fabric(Random(seed))
    serial = Load(seed, fabric, replication(), 1, is_routed=False).carry_out()
    for cores in (2, 3, 4):
        assert Load(seed, fabric, replication(), cores, is_routed=False).carry_out() == serial


@pytest.mark.parametrize("cores", [1, 2, 3, 4])
def test_every_core_has_its_share_of_the_switches(cores: int) -> None:
    fabric = FatTreeSpecification(kind="fat_tree", k=8, host_link_gbps=100.0, uplink_gbps=100.0).build()
    found = partition(fabric, cores)
    assert list(found.part) == list(fabric.switches)
    work = Counter(found.of_source(link) for link in fabric.links)
    assert len(work) == cores
    assert max(work.values()) < 1.25 * len(fabric.links) / cores
    between = sum(len(found.cuts(part)) for part in range(cores))
    assert between < len(fabric.links) / 3.5
    assert partition(fabric, cores) == found


def test_switches_that_a_link_without_delay_joins_stay_together() -> None:
    cables = (Cable(("h0", "s0"), 1e11, 1e-6), Cable(("s0", "s1"), 1e11, 0.0), Cable(("s1", "s2"), 1e11, 2e-6))
    fabric = Fabric(("h0",), ("s0", "s1", "s2"), cables, 1)
    found = partition(fabric, 2)
    assert found.part["s0"] == found.part["s1"] != found.part["s2"]
    assert found.lookahead_ps == 1_000_000
    with pytest.raises(
        ValueError, match=r"3 cores need as many parts .* make 2 at most; links without a delay join s0"
    ):
        partition(fabric, 3)


def test_a_fabric_that_cannot_be_divided_is_refused_by_name() -> None:
    fabric = drawn_fabric(Random(0))
    with pytest.raises(ValueError, match="one core or more, not 0"):
        EmulatedFabric(fabric, trainyard(), cores=0)
    with pytest.raises(ValueError, match="99 cores need as many parts of the fabric"):
        EmulatedFabric(fabric, trainyard(), cores=99)
    cables = (Cable(("s0", "s1"), 1e11, 1e-6), Cable(("h0", "s0"), 1e11, 0.0))
    with pytest.raises(ValueError, match="the link from s0 to host h0 has no delay"):
        EmulatedFabric(Fabric(("h0",), ("s0", "s1"), cables, 1), trainyard(), cores=2)


def routed(fabric: Fabric, cores: int) -> EmulatedFabric:
    """Return a fabric whose switches route."""
    emulated = EmulatedFabric(fabric, trainyard(), cores=cores)
    for switch in emulated.switches.values():
        switch.clear()
        write_entries(switch, routing_of(fabric))
    return emulated


def test_every_core_works_in_a_thread_of_its_own() -> None:
    fabric = drawn_fabric(Random(1))
    load = Load(1, fabric, trainyard(), 3)
    load.carry_out()
    emulated = load.emulated
    assert len({*emulated.thread_ids, threading.get_native_id()}) == 3
    assert {*emulated.thread_ids} <= {int(task.name) for task in Path("/proc/self/task").iterdir()}
    assert min(emulated.packet_hops_by_core) > 0
    assert sum(emulated.packet_hops_by_core) == emulated.packet_hops
    assert max(emulated.packet_hops_by_core) <= emulated.critical_packet_hops < emulated.packet_hops


def test_threads_end_with_their_fabric() -> None:
    load = Load(2, drawn_fabric(Random(2)), trainyard(), 2)
    load.carry_out()
    (thread,) = load.emulated.thread_ids
    del load
    gc.collect()
    deadline_s = time.monotonic() + PATIENCE_S  # the kernel may take a moment to end a thread that has returned
    while Path(f"/proc/self/task/{thread}").exists():
        assert time.monotonic() < deadline_s
        time.sleep(0.01)


def test_captured_packets_are_those_that_one_core_has_however_many_there_are() -> None:
    fabric = drawn_fabric(Random(3))
    found = []
    for cores in (1, 2):
        emulated = routed(fabric, cores=cores)
        nics = [nic for host in fabric.hosts for nic in fabric.nics[host]]
        packet = ipv4_packet(FiveTuple(nics[0].address, nics[-1].address, UDP_PROTOCOL, 1, 2))
        for _ in range(5000):
            emulated.inject(nics[0].link, packet, 200)
        emulated.run(10**12)
        found.append((emulated.captured(), emulated.packet_hops))
    assert len(found[0][0]) == 5000
    assert found[0] == found[1]


def test_ends_of_long_packets_are_kept_on_the_way_and_forgotten_then(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tails, "MOST_BYTES", 40_000)
    cables = (Cable(("h0", "s0"), 1e11, 1e-6), Cable(("s0", "s1"), 1e11, 1e-6), Cable(("s1", "h1"), 1e11, 1e-6))
    fabric = Fabric(("h0", "h1"), ("s0", "s1"), cables, 1)
    emulated = routed(fabric, cores=2)
    source, destination = (fabric.nics[host][0] for host in fabric.hosts)
    ends = FiveTuple(source.address, destination.address, UDP_PROTOCOL, 1, 2)
    sent = [ipv4_packet(ends, payload=bytes([number]) * 3000) for number in range(100)]
    for number, octets in enumerate(sent):
        emulated.inject(source.link, octets)
        # Packets are in both parts, and on the way between them; sometimes there are none.
        emulated.run(emulated.now_ps + (10**9 if number % 10 == 9 else 300_000))
    assert [capture.octets[-3000:] for capture in emulated.captured()] == [octets[-3000:] for octets in sent]
    assert emulated.is_at_rest


def test_the_last_window_reaches_the_end_of_the_clock_and_no_further() -> None:
    fabric, found = drawn_fabric(Random(5)), []
    for cores in (1, 2):
        emulated = routed(fabric, cores=cores)
        nics = [nic for host in fabric.hosts for nic in fabric.nics[host]]
        emulated.run(END_PS - 1000)
        ends = FiveTuple(nics[0].address, nics[-1].address, UDP_PROTOCOL, 1, 2)
        emulated.inject(nics[0].link, ipv4_packet(ends), 200)
        assert emulated.run(END_PS) == ()
        found.append((emulated.now_ps, emulated.packet_hops, emulated.next_event_ps))
    assert found[0][1] == 1
    assert found[0] == found[1]


FORKING = """
import os
import signal
from random import Random
from emulator.fabric import EmulatedFabric
from tests.emulator.loads import drawn_fabric
from tests.emulator.programs import trainyard

emulated = EmulatedFabric(drawn_fabric(Random(4)), trainyard(), cores=2)
emulated.run(0)
child = os.fork()
if child == 0:
    signal.alarm(200)  # ends a process that waits for threads it does not have
    emulated.run(10**9)
    os._exit(0)
assert os.waitpid(child, 0)[1] == 0
emulated.run(10**9)
"""


def test_a_forked_process_runs_its_copy_of_a_fabric_in_threads_of_its_own() -> None:
    subprocess.run([sys.executable, "-c", FORKING], check=True, timeout=300)
