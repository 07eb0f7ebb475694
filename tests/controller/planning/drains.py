"""Controllers with jobs whose switches and cables are drained."""

import asyncio
from collections.abc import Callable, Collection, Mapping

from controller.links.drains import DrainKind, DrainTarget
from controller.links.quiet_links import QuietLinks
from controller.planning.context import PlannerContext
from controller.planning.directives import DirectivePublisher
from controller.planning.draining import Draining, DrainState
from controller.planning.planner import Planner
from controller.planning.snapshots import Snapshots
from controller.registry.registry import Registry
from controller.registry.requests import FlowGroupRequest, FlowRequest, JobRequest, NicReference
from controller.rules.flow_rules import RulesBySwitch
from controller.southbound.recording import RecordingSouthbound
from experiments.scenarios.driven.clock import DrivenClock
from policies.job import Profile
from policies.plan import Plan
from policies.registry import find_policy
from tests.topologies.builders import fabrics
from topologies.ecmp import FabricHash, hash_multipliers
from topologies.fabric import Fabric
from topologies.routing import Routing

AGG = DrainTarget(DrainKind.SWITCH, "a0")
FABRICS = fabrics.filter(lambda fabric: len(fabric.hosts) > 1)


class Counted:
    """Counters that nothing moves but a test."""

    def __init__(self) -> None:
        self.counts: dict[int, int] = {}
        self.silent: set[int] = set()

    async def link_bytes(self, links: Collection[int]) -> Mapping[int, int]:
        return {link: self.counts.get(link, 0) for link in links if link not in self.silent}


class Noting(RecordingSouthbound):
    """Notes what is written together with routes."""

    def __init__(self, switches: Collection[str]) -> None:
        super().__init__(switches)
        self.rerouted: list[tuple[RulesBySwitch, Routing]] = []
        self.on_reroute: Callable[[], None] = lambda: None

    async def reroute(self, rules: RulesBySwitch, routing: Routing) -> None:
        await super().reroute(rules, routing)
        self.rerouted.append((rules, routing))
        self.on_reroute()


class World:
    """A planner with one job, a ring over some hosts, and its drains."""

    def __init__(self, fabric: Fabric, hosts: Collection[str], fabric_hash: FabricHash = FabricHash.KNOWN) -> None:
        self.fabric = fabric
        routing = Routing(fabric, hash_multipliers(fabric.switches, 1))
        self.registry, self.clock = Registry(fabric, 1e6), DrivenClock(100.0)
        self.southbound, self.counted = Noting(fabric.switches), Counted()
        self.planner = Planner(
            PlannerContext(
                registry=self.registry,
                snapshots=Snapshots(self.registry, routing, num_levels=8, seed=1),
                routing=routing,
                policy=find_policy("crux"),
                southbound=self.southbound,
                directives=DirectivePublisher(self.registry),
                clock=self.clock,
                fabric_hash=fabric_hash,
            )
        )
        self.draining = Draining(self.planner, self.registry, self.southbound, self.clock, QuietLinks(self.counted))
        ring = [NicReference(host, 0) for host in hosts]
        flows = tuple(FlowRequest(*ends, 10**8, 0.0) for ends in zip(ring, ring[1:] + ring[:1], strict=True))
        self.registry.register_job(JobRequest("gpt", tuple(hosts), 1, Profile(1.0, 0.5, 1.0)), 100.0)
        self.registry.register_flow_groups("gpt", [FlowGroupRequest("ring", flows)])
        self.planner.mark_changed()
        self.settle()

    def settle(self) -> None:
        asyncio.run(self.planner.settle())

    def drain(self, target: DrainTarget, *, is_forced: bool = False) -> bool:
        return asyncio.run(self.draining.drain(target, "alice", is_forced=is_forced))

    def undrain(self, target: DrainTarget) -> None:
        asyncio.run(self.draining.undrain(target))

    def state(self, target: DrainTarget, *, after_s: float = 2.0) -> DrainState:
        """The state of a drain, with the counters read twice."""
        asyncio.run(self.draining.states())
        self.clock.advance_to(self.clock.now_s() + after_s)
        [state] = [each for each in asyncio.run(self.draining.states()) if each.drain.target == target]
        return state

    @property
    def plan(self) -> Plan:
        assert self.planner.decision is not None
        return self.planner.decision.plan

    def links(self, target: DrainTarget) -> set[int]:
        return {2 * cable + way for cable in self.draining.targets.cables(target) for way in (0, 1)}
