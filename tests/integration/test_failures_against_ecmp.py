"""Under failures a Plan delivers whatever plain ECMP delivers, once the controller knows of them."""

import asyncio
import random
from typing import Any

import pytest

from benchmarks.controlled_fabric import ControlledFabric, controlled
from topologies.addressing import FiveTuple
from workloads.scenario import Scenario

TESTBED = {"kind": "clos", "tors": 6, "aggs": 8, "hosts_per_tor": 2, "nics_per_host": 8, "uplinks_per_pair": 2}
"""Crux's testbed; of a smaller fabric every second failure cuts somebody off."""
SMALL = {"kind": "clos", "tors": 3, "aggs": 3, "hosts_per_tor": 2, "nics_per_host": 2}


def scenario(topology: dict[str, Any]) -> Scenario:
    """Return a scenario with rings over all hosts, and over every second one."""
    names = [f"h{number}" for number in range(topology["tors"] * topology["hosts_per_tor"])]
    workload = {"type": "phases", "compute_s": 0.1, "comm_start": 0.5, "bytes": 5e8, "pattern": "ring"}
    job = {"gpus_per_host": 4, "duration_s": 1, "workload": workload}
    document = {
        "name": "against ecmp",
        "topology": topology | {"gpus_per_host": 8, "host_link_gbps": 800, "uplink_gbps": 100},
        "jobs": [job | {"name": "even", "hosts": names[::2]}, job | {"name": "all", "hosts": names}],
    }
    return Scenario.model_validate(document)


def backwards(five_tuple: FiveTuple) -> FiveTuple:
    return FiveTuple(
        five_tuple.destination_address,
        five_tuple.source_address,
        five_tuple.protocol,
        five_tuple.destination_port,
        five_tuple.source_port,
    )


def delivered(fabric: ControlledFabric) -> set[FiveTuple]:
    """Return the flows that arrive with their acknowledgements."""
    flows = [flow.five_tuple for flow in fabric.flows]
    carried = fabric.carried((*flows, *map(backwards, flows)))
    return {flow for flow in flows if flow in carried and backwards(flow) in carried}


def connected(fabric: ControlledFabric, cables: set[int]) -> set[FiveTuple]:
    """Return the flows whose NICs are still connected."""
    left = fabric.routing.without({link for cable in cables for link in (2 * cable, 2 * cable + 1)})
    nics = fabric.emulated.fabric.nic_by_address
    return {
        flow.five_tuple
        for flow in fabric.flows
        if left.candidate_paths(nics[flow.five_tuple.source_address], nics[flow.five_tuple.destination_address])
    }


async def compare(topology: dict[str, Any], policy: str, seed: int, failures: int, most: int) -> None:
    drawn = random.Random(seed)
    asked = scenario(topology)
    async with controlled(asked, "ecmp", seed) as plain, controlled(asked, policy, seed) as planned:
        both = plain, planned
        flows = {flow.five_tuple for flow in plain.flows}
        for _ in range(failures):
            cables = set(drawn.sample(range(len(plain.emulated.fabric.cables)), drawn.randint(1, most)))
            await change((planned,), cables, up=False, only_leave=True)
            # Rules alone that are taken back, before any plan, leave every flow a way that base routing knows.
            assert delivered(planned) == connected(planned, cables), f"seed {seed}, cables {sorted(cables)}"
            await change(both, cables, up=False)
            by_ecmp, by_plan = map(delivered, both)
            assert by_ecmp <= by_plan, f"seed {seed}, cables {sorted(cables)}"
            # It could not be more: all between which a way is left, and cut off are just the others.
            assert by_plan == connected(planned, cables), f"seed {seed}, cables {sorted(cables)}"
            assert {flow.five_tuple for flow in planned.flows if flow.is_cut_off} == flows - by_plan
            back = set(drawn.sample(sorted(cables), len(cables) // 2))
            await change(both, back, up=True)
            assert delivered(planned) == connected(planned, cables - back), f"seed {seed}, back {sorted(back)}"
            await change(both, cables - back, up=True)
            assert delivered(planned) == flows


async def change(
    fabrics: tuple[ControlledFabric, ...], cables: set[int], *, up: bool, only_leave: bool = False
) -> None:
    """Take cables down, or bring them up, and let the controllers act."""
    for fabric in fabrics:
        for cable in cables:
            fabric.set_cable(cable, up=up)
        await fabric.report_ports()
        await (fabric.leave_dead_links() if only_leave else fabric.settle())


@pytest.mark.parametrize("policy", ["crux", "trainyard"])
@pytest.mark.parametrize("seed", range(3))
def test_on_a_fabric_that_failures_partition(policy: str, seed: int) -> None:
    asyncio.run(compare(SMALL, policy, seed, failures=6, most=8))


@pytest.mark.parametrize("seed", range(2))
def test_on_the_testbed(seed: int) -> None:
    asyncio.run(compare(TESTBED, "crux", seed, failures=3, most=24))
