"""A k = 4 fat-tree whose operator has made everything up gives what the regular one gives.

It comes from a fabric file and from tables of cables. Policies decide the same for it, up to names, where the hash is
one of names; packets arrive at the same hosts, at their levels, by the paths of the real hash.
"""

import zlib
from collections.abc import Mapping
from dataclasses import replace
from itertools import permutations, product
from pathlib import Path
from random import Random
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import topologies.ecmp
import trainyard as ty
from emulator.observations import TraceKind
from experiments.scenarios import modelled, simulated
from policies.registry import policy_names
from tests.emulator.fabrics import emulated, five_tuple, prioritise, routing_of
from tests.emulator.packets import ipv4_packet
from tests.topologies.builders import fabrics
from tests.topologies.made_up import MadeUpFabric, made_up, tables_of
from topologies.addressing import TCP_PROTOCOL, UDP_PROTOCOL, FiveTuple
from topologies.ecmp import hash_multipliers
from topologies.expanding import expanded, fabric_file
from topologies.fabric import Fabric
from topologies.fabric_specification import FabricSpecification
from topologies.fat_tree import FatTreeSpecification
from topologies.imports import netbox
from topologies.imports.draft import Defaults, Draft
from trainyard import plans
from workloads.loading import load_topology

LEVELS = (0, 3, 7)


def _two_speeds() -> Fabric:
    """The pods of one vendor have links of 100 Gbit/s, those of the other, of 200 Gbit/s."""
    regular = FatTreeSpecification(kind="fat_tree", k=4, host_link_gbps=100, uplink_gbps=100).build()
    half = len(regular.cables) // 2
    cables = tuple(replace(cable, rate_bps=(1 + number // half) * 1e11) for number, cable in enumerate(regular.cables))
    return replace(regular, cables=cables)


REGULAR = _two_speeds()
JOBS: list[dict[str, Any]] = [
    {
        "name": "vision",
        "hosts": ["h0", "h5", "h10", "h15"],
        "workload": {"type": "phases", "compute_s": 0.5, "comm_start": 0.5, "bytes": 8e9, "pattern": "ring"},
    },
    {
        "name": "language",
        "hosts": ["h1", "h2", "h6", "h11", "h12"],
        "workload": {"type": "phases", "compute_s": 1.5, "comm_start": 0.6, "bytes": 6e9, "pattern": "all_to_all"},
    },
    {
        "name": "speech",
        "hosts": ["h3", "h4", "h9", "h14"],
        "workload": {"type": "phases", "compute_s": 0.8, "comm_start": 0.3, "bytes": 9e9, "pattern": "pairs"},
    },
]


@pytest.fixture(params=[1, 2])
def other(request: pytest.FixtureRequest) -> MadeUpFabric:
    return made_up(REGULAR, Random(request.param))


def _scenario(topology: FabricSpecification, names: Mapping[str, str]) -> dict[str, Any]:
    jobs = [
        job | {"hosts": [names[host] for host in job["hosts"]], "gpus_per_host": 8, "iterations": 4} for job in JOBS
    ]
    return {"name": "three", "topology": topology.model_dump(mode="json"), "jobs": jobs}


@pytest.fixture
def _hash_of_names(other: MadeUpFabric, monkeypatch: pytest.MonkeyPatch) -> None:
    """Have every node hash as the node that it stands for: by its name, and by the addresses of that one's hosts."""
    fabric = other.specification.build()
    old = {new: name for name, new in other.names.items()}
    addresses = {
        nic.address.packed: REGULAR.nics[old[host]][nic.index].address.packed
        for host, nics in fabric.nics.items()
        for nic in nics
    }

    def crc(octets: bytes) -> int:
        ends = octets[:4], octets[4:8]
        return zlib.crc32(b"".join(addresses.get(end, end) for end in ends) + octets[8:])

    def multipliers(switches: tuple[str, ...], seed: int) -> dict[str, int]:
        found = hash_multipliers([old.get(switch, switch) for switch in switches], seed)
        return dict(zip(switches, found.values(), strict=True))

    monkeypatch.setattr(topologies.ecmp, "zlib", SimpleNamespace(crc32=crc))
    for module in (plans, simulated, modelled):
        monkeypatch.setattr(module, "hash_multipliers", multipliers)


def _renamed(value: Any, names: Mapping[str, str]) -> Any:
    if isinstance(value, dict):
        return {key: _renamed(found, names) for key, found in value.items()}
    if isinstance(value, list):
        return [_renamed(found, names) for found in value]
    return names.get(value, value) if isinstance(value, str) else value


@pytest.mark.slow
@pytest.mark.usefixtures("_hash_of_names")
@pytest.mark.parametrize("policy", policy_names())
def test_policies_decide_the_same_up_to_names(policy: str, other: MadeUpFabric) -> None:
    regular = _scenario(expanded(REGULAR), {name: name for name in REGULAR.hosts})
    found = ty.plan(_scenario(other.specification, other.names), policy).to_dict()
    assert found == _renamed(ty.plan(regular, policy).to_dict(), other.names)


@pytest.mark.usefixtures("_hash_of_names")
def test_runs_have_the_same_results(other: MadeUpFabric) -> None:
    regular = _scenario(expanded(REGULAR), {name: name for name in REGULAR.hosts})
    one, same = (
        ty.run(scenario, "ecmp", on="simulator") for scenario in (regular, _scenario(other.specification, other.names))
    )
    assert same.to_dict() == _renamed(one.to_dict(), other.names)


def test_the_file_says_it_all(other: MadeUpFabric, tmp_path: Path) -> None:
    file = tmp_path / "rack.yaml"
    file.write_text(fabric_file(other.specification))
    assert load_topology(file).build() == other.specification.build()


def test_tables_of_cables_give_the_same_fabric(other: MadeUpFabric, tmp_path: Path) -> None:
    tables = tables_of(other.specification)
    for name, text in vars(tables).items():
        (tmp_path / name).write_text(text)
    draft = Draft()
    netbox.add_cabling(draft, tmp_path / "cables", tmp_path / "devices", netbox.Roles(frozenset(["fabric"])))
    netbox.add_addresses(draft, [tmp_path / "addresses"])
    netbox.add_interfaces(draft, [tmp_path / "interfaces"])
    imported = draft.specification(Defaults()).build()
    whole = other.specification.build()
    # Ports without a cable are in the file alone.
    for switch in whole.switches:
        assert {*imported.identity[switch].port_names} <= {*whole.identity[switch].port_names}
        assert imported.identity[switch].node_id == whole.identity[switch].node_id
    assert replace(imported, identities=whole.identities) == whole


@pytest.mark.slow
def test_packets_arrive_at_their_levels_by_the_paths_of_the_hash(other: MadeUpFabric) -> None:
    fabric = other.specification.build()
    kinds = product(permutations(fabric.hosts, 2), (UDP_PROTOCOL, TCP_PROTOCOL), LEVELS)
    flows = [
        (five_tuple(fabric, *ends, 49152 + number, protocol), level)
        for number, (ends, protocol, level) in enumerate(kinds)
    ]
    result, routing = emulated(fabric, trace_rows=100_000), routing_of(fabric)
    for flow, level in flows:
        if level:
            prioritise(result, flow, level)
    for start in range(0, len(flows), 1000):
        batch = flows[start : start + 1000]
        for number, (flow, _) in enumerate(batch, start=100):
            result.inject(fabric.nic_by_address[flow.source_address].link, ipv4_packet(flow, time_to_live=9), number)
        result.run(result.now_ps + 10**10)
        crossed: dict[int, list[int]] = {}
        for row in result.take_trace():
            if row.kind is TraceKind.STARTED:
                crossed.setdefault(row.length, []).append(row.link)
        captured = {capture.length: capture for capture in result.captured()}
        assert captured.keys() == set(range(100, 100 + len(batch)))
        for number, (flow, level) in enumerate(batch, start=100):
            path = routing.hashed_path(flow)
            nic = fabric.nic_by_address[flow.destination_address]
            assert captured[number].link == path[-1] == fabric.reverse(nic.link)
            assert captured[number].octets[:6] == nic.mac.packed
            assert captured[number].octets[15] >> 5 == level
            assert tuple(crossed[number]) == path[1:]


@pytest.mark.slow
@settings(max_examples=40, deadline=None)
@given(fabrics, st.integers(0, 1 << 32).map(Random))
def test_unsteered_flows_take_the_path_that_their_5_tuple_gives(fabric: Fabric, random: Random) -> None:
    """On any fabric, whatever its addresses, and in whatever order its ports are."""
    nics = [nic for nics in fabric.nics.values() for nic in nics]
    pairs = [(one, other) for one in nics for other in nics if one.host != other.host]
    result, routing = emulated(fabric, trace_rows=10_000), routing_of(fabric)
    flows = {
        100 + number: FiveTuple(
            source.address,
            destination.address,
            random.choice((UDP_PROTOCOL, TCP_PROTOCOL)),
            random.randrange(1 << 16),
            random.randrange(1 << 16),
        )
        for number, (source, destination) in enumerate(random.sample(pairs, min(20, len(pairs))))
    }
    for length, flow in flows.items():
        result.inject(fabric.nic_by_address[flow.source_address].link, ipv4_packet(flow), length)
    result.run(10**10)
    crossed: dict[int, list[int]] = {}
    for row in result.take_trace():
        if row.kind is TraceKind.STARTED:
            crossed.setdefault(row.length, []).append(row.link)
    for length, flow in flows.items():
        assert tuple(crossed[length]) == routing.hashed_path(flow)[1:], flow
    assert len(result.captured()) == len(flows)
