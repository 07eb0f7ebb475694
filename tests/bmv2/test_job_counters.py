"""Rules for whole jobs and their counters on a live BMv2: read back as written, and counting what they match."""

from pathlib import Path
from typing import cast

import pytest
from finsy import P4Schema, P4TableEntry
from finsy.p4entity import decode_entity

from controller.rules.job_rules import JobRule
from controller.southbound.p4runtime.counter_reading import (
    JOB_COUNTERS,
    CounterEntry,
    bytes_of_jobs,
    bytes_of_links,
    level_counters,
)
from controller.southbound.p4runtime.encoding import Encoder
from controller.southbound.p4runtime.entries import JOB_TABLE, Entity, base_entries, is_own, job_entry
from controller.southbound.p4runtime.states import difference, state_of
from p4src import P4INFO
from tests.bmv2.live import VARIABLE, Bmv2, find_bmv2, running
from tests.bmv2.session import Packet
from tests.p4src.packets import Ipv4
from topologies.ecmp import hash_multipliers
from topologies.fabric import Fabric
from topologies.routing import Routing
from topologies.specification import ClosSpecification

SCHEMA = P4Schema(Path(P4INFO))
ENCODER = Encoder(SCHEMA)
PACKETS = 3


def counted(bmv2: Bmv2, fabric: Fabric, level: int) -> tuple[dict[tuple[int, str], int], int]:
    """What t0's rules for whole jobs have counted, and all of its ports together with a level."""
    jobs, ports = (
        [
            cast("CounterEntry", decode_entity(found, SCHEMA))
            for found in bmv2.read(*(wanted.encode(SCHEMA) for wanted in selected))
        ]
        for selected in (JOB_COUNTERS, level_counters("t0", level, fabric))
    )
    return dict(bytes_of_jobs(jobs, fabric)), sum(count for _, count in bytes_of_links(ports, "t0", fabric))


def test_a_live_bmv2_counts_what_a_job_sends() -> None:
    command = find_bmv2()
    if command is None:
        pytest.skip(
            f"simple_switch_grpc is not on PATH and {VARIABLE} does not name it: that a live BMv2 counts for jobs is"
            " not checked here; that the emulator does is, in test_measured_jobs"
        )
    fabric = ClosSpecification(
        kind="clos", tors=2, aggs=1, hosts_per_tor=2, host_link_gbps=100, uplink_gbps=100
    ).build()
    base = state_of(base_entries("t0", Routing(fabric, hash_multipliers(fabric.switches, seed=1))))
    source, destination = fabric.nics["h0"][0].address, fabric.nics["h2"][0].address
    octets = Ipv4(source=source, destination=destination, source_port=50_000, destination_port=4791).octets()
    with running(command) as bmv2:
        bmv2.clear()
        held: dict[object, Entity] = {}
        for level in (7, 2):
            wanted = state_of([job_entry(JobRule("t0", source, "h2", fabric.nics["h2"][0].subnet, level))])
            for stage in difference(held, {**base, **wanted} if not held else wanted):
                bmv2.write([ENCODER.update(update) for update in stage])
            held = dict(wanted)
            found = bmv2.read(P4TableEntry(JOB_TABLE).encode(SCHEMA))
            entries = [cast("Entity", decode_entity(entity, SCHEMA)) for entity in found]
            assert difference(state_of(filter(is_own, entries)), wanted) == ()
            before = counted(bmv2, fabric, level)
            for _ in range(PACKETS):
                bmv2.send(Packet(1, octets))
            after = counted(bmv2, fabric, level)
            assert after[0].keys() == {(source, "h2")}
            assert after[0][source, "h2"] - before[0][source, "h2"] == PACKETS * len(octets)
            assert after[1] - before[1] == PACKETS * len(octets)
