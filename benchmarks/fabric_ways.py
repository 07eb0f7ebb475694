"""One drawn mix on the same fabric in several ways, for ``mixed_fabric.py``: whose its switches and routes are."""

from dataclasses import dataclass, replace
from pathlib import Path

from benchmarks.drawn_mixes import RUN_SEEDS, loaded
from experiments.scenarios.results import RunResult
from experiments.scenarios.simulated import run_on_simulator
from topologies.ecmp import hash_multipliers
from topologies.expanding import expanded
from topologies.fabric import Control, Fabric
from topologies.given_routing import GivenRoutes, GivenRouting
from topologies.routing import Routing
from workloads.scenario import Scenario

POLICIES = ("ecmp", "crux", "trainyard")
_OTHERS_SEED = 4711


@dataclass(frozen=True, slots=True)
class Way:
    """A way to run a fabric: which of its switches are ordinary, and whether others fill base routing."""

    ordinary: frozenset[str] = frozenset()
    others_route: bool = False


def ways(fabric: Fabric) -> dict[str, Way]:
    """Return the ways to run a fat-tree, by name."""
    edges = {fabric.links[nic.link].destination for nic in fabric.nic_by_address.values()}
    aggregations = [
        switch
        for switch in fabric.switches
        if switch not in edges and any(link.destination in edges for link in fabric.links_from[switch])
    ]
    cores = frozenset(fabric.switches) - edges - set(aggregations)
    return {
        "ours": Way(),
        "other_routing": Way(others_route=True),
        "dscp_only_cores": Way(cores),
        "mixed": Way(frozenset(aggregations[: len(aggregations) // 2]), others_route=True),
        "dscp_only": Way(frozenset(fabric.switches)),
    }


def routing_of_others(routing: Routing) -> Routing:
    """Return shortest paths as another client has written them: with its own hashes and order of members."""
    fabric = routing.fabric
    multipliers = hash_multipliers(fabric.switches, _OTHERS_SEED)
    return GivenRouting(
        fabric,
        {
            switch: GivenRoutes(
                tuple(replace(route, links=route.links[::-1]) for route in routing.routes(switch)), multipliers[switch]
            )
            for switch in fabric.switches
        },
    )


def run(scenario: Scenario, way: Way, policy: str) -> RunResult:
    """Run a scenario on its fabric in one of the ways."""
    document = expanded(scenario.topology.build()).model_dump(mode="json")
    for switch in document["switches"]:
        switch["control"] = Control.DSCP_ONLY if switch["name"] in way.ordinary else Control.OURS
    on_fabric = Scenario.model_validate(scenario.model_dump(mode="json", exclude_unset=True) | {"topology": document})
    others = routing_of_others if way.others_route else None
    return run_on_simulator(on_fabric, policy, on_progress=lambda *_: None, base_routing=others)


def measure(drawing: Path, seed: int) -> dict[str, dict[str, list[RunResult]]]:
    """Return the runs of one mix by policy and way, one of each run seed."""
    drawn = loaded(drawing)
    scenarios = [Scenario.model_validate(drawn.mix(seed, run_seed)) for run_seed in RUN_SEEDS]
    all_ways = ways(scenarios[0].topology.build())
    return {
        policy: {name: [run(scenario, way, policy) for scenario in scenarios] for name, way in all_ways.items()}
        for policy in POLICIES
    }
