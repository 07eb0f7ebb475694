"""Trainyard's own processes over running BMv2s: agents probe, and the candidate table is what is there."""

import sys
from collections.abc import Mapping
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from tests.bmv2.fabric import FABRIC, live_fabric
from tests.bmv2.live import VARIABLE, find_bmv2
from topologies.addressing import FiveTuple
from topologies.ecmp import hash_multipliers
from topologies.fabric import Fabric, Nic
from topologies.fabric import Path as FabricPath
from topologies.routing import Routing
from topologies.specification import ClosSpecification

CLOS = ClosSpecification(
    kind="clos", tors=2, aggs=2, hosts_per_tor=2, host_link_gbps=100, uplink_gbps=100, uplinks_per_pair=2
)
RATE_GBPS = 2.0
"""Agents' pace: about 300 probes a second for each host at first, 30 later on, which BMv2s on one machine can carry."""

JOB = """
import asyncio
from hostlib import Client, Flow, FlowGroup, Job, Nic, Profile

RING = (("h0", "h1"), ("h1", "h2"), ("h2", "h3"), ("h3", "h0"))

async def main():
    async with Client("127.0.0.1:4790") as client:
        client.register_job(Job("gpt", ("h0", "h1", "h2", "h3"), 32, Profile(1.0, 0.5, 32.0)))
        flows = tuple(Flow(Nic(source), Nic(destination), 10**9) for source, destination in RING)
        client.register_flow_groups("gpt", [FlowGroup("ring", flows)])
        await asyncio.Event().wait()

asyncio.run(main())
"""

NUM_PAIRS = 4

Rows = list[dict[str, Any]]


@pytest.fixture(scope="module")
def command() -> str:
    found = find_bmv2()
    if found is None:
        pytest.skip(
            f"simple_switch_grpc is not on PATH and {VARIABLE} does not name it: that agents on real interfaces fill "
            "the candidate table is not shown here"
        )
    return found


def fresh(pair: dict[str, Any], fabric: Fabric) -> dict[FabricPath, list[int]]:
    """A shown pair's fresh paths, as links, and the ports that lead along them."""
    paths = {}
    for candidate in pair["candidates"]:
        if candidate["freshness"] == "FRESH":
            paths[path_of(candidate, fabric)] = candidate["source_ports"]
    return paths


def path_of(shown: dict[str, Any], fabric: Fabric) -> FabricPath:
    """A shown path, as links."""
    hops = zip(pairwise(shown["path"]["nodes"]), shown["path"]["links"], strict=True)
    return tuple(fabric.links_between(*ends)[parallel] for ends, parallel in hops)


def ends(pair: dict[str, Any], fabric: Fabric) -> tuple[Nic, Nic]:
    """The NICs of a shown pair."""
    source, destination = (shown.rpartition(".") for shown in (pair["source"], pair["destination"]))
    return fabric.nics[source[0]][int(source[2])], fabric.nics[destination[0]][int(destination[2])]


def is_complete(rows: Rows, routing: Routing, dead: set[int]) -> bool:
    """Whether of every pair those paths are fresh that live cables allow, and no others."""
    fabric = routing.fabric
    return len(rows) == NUM_PAIRS and all(
        set(fresh(pair, fabric))
        == {path for path in routing.candidate_paths(*ends(pair, fabric)) if not dead & {*path}}
        for pair in rows
    )


def assert_ports_are_right(rows: Rows, routing: Routing, planned: Mapping[str, FabricPath]) -> None:
    """Every port leads where the flow's rules send it, or else the fabric's hash."""
    fabric = routing.fabric
    for pair in rows:
        source, destination = ends(pair, fabric)
        for path, ports in fresh(pair, fabric).items():
            assert ports
            for port in ports:
                flow = FiveTuple(source.address, destination.address, 17, port, 4791)
                assert planned.get(str(flow), routing.hashed_path(flow)) == path


def test_agents_find_all_paths_of_a_running_fabric(command: str, tmp_path: Path) -> None:
    fabric = CLOS.build()
    routing = Routing(fabric, hash_multipliers(fabric.switches, 1))
    with live_fabric(CLOS, command, tmp_path) as live:
        live.start_controller()
        for host in fabric.nics:
            live.start_agent(host, RATE_GBPS)
        live.wait_until_shown("switches", lambda rows: all(row["condition"] == "CAUGHT_UP" for row in rows))
        live.start(FABRIC, sys.executable, "-c", JOB)
        rows = live.wait_until_shown("candidates", lambda rows: is_complete(rows, routing, set()))
        assert all(pair["is_complete"] for pair in rows)
        flows = live.show("paths")
        assert any(flow["steered"] for flow in flows)
        assert_ports_are_right(rows, routing, {flow["five_tuple"]: path_of(flow, fabric) for flow in flows})
        assert not live.show("drops")

        cable = live.fabric.links[live.fabric.links_between("t0", "a0")[0]]
        dead = {cable.index, live.fabric.reverse(cable.index)}
        live.cut(cable)
        live.wait_until_shown("candidates", lambda rows: is_complete(rows, routing, dead))
        live.mend(cable)
        live.wait_until_shown("candidates", lambda rows: is_complete(rows, routing, set()))
