"""A controller with two jobs, and what its operators do by hand."""

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path as File

from controller.planning.decision import Decision
from controller.planning.draining import Draining
from controller.planning.intervening import Intervening
from controller.planning.path_names import path_name
from controller.profiling.measured import ProfilingResults
from controller.registry.requests import FlowGroupRequest, FlowRequest, JobRequest, NicReference
from policies.flows import Flow
from policies.job import Profile
from policies.plan import FlowPlan
from tests.controller.record.lives import CLOS, Life
from topologies.fabric import Fabric, Path

TWICE = CLOS.model_copy(update={"uplinks_per_pair": 2, "nics_per_host": 1})
"""Two cables between every ToR and every aggregation switch."""


class World:
    """A controller with a database and two jobs, and what its operators do."""

    def __init__(self, folder: File, policy: str = "crux") -> None:
        self.life = Life(folder / "t.db", policy)
        self.start()
        self.register("gpt", ("h0", "h2"))
        self.register("bert", ("h1", "h3"))

    def start(self) -> None:
        self.life.start(TWICE)
        self.clock, self.planner = self.life.clock, self.life.controller.planner
        registry, southbound = self.life.controller.registry, self.life.southbound
        self.hands = Intervening(self.planner, registry, southbound, self.clock, ProfilingResults())

    @property
    def fabric(self) -> Fabric:
        return self.life.controller.registry.fabric

    @property
    def draining(self) -> Draining:
        return self.life.controller.draining

    def register(self, name: str, hosts: tuple[str, str]) -> None:
        registry = self.life.controller.registry
        there, back = (NicReference(host, 0) for host in hosts)
        registry.register_job(JobRequest(name, hosts, 16, Profile(1.0, 0.5, 1.0)), self.clock.now_s(), "token")
        flows = (FlowRequest(there, back, 10**9, 0.0), FlowRequest(back, there, 10**9, 0.0))
        registry.register_flow_groups(name, [FlowGroupRequest("ring", flows)])

    async def settle(self, after_s: float = 0.01) -> Decision | None:
        """Return the Plan of a moment later, with all leases renewed and whatever has changed committed."""
        registry = self.life.controller.registry
        await registry.commit()
        for job in registry.jobs:
            registry.renew(job.request.name, self.clock.now_s() + after_s)
        self.clock.advance_to(self.clock.now_s() + after_s)
        self.planner.mark_changed()
        await self.planner.settle()
        return self.planner.decision

    @property
    def decision(self) -> Decision:
        assert self.planner.decision is not None
        return self.planner.decision

    def flow(self, name: str) -> Flow:
        [flow] = [
            flow for job in self.decision.snapshot.jobs for flow in job.flows if "/".join(map(str, flow.key)) == name
        ]
        return flow

    def planned(self, name: str) -> FlowPlan:
        return self.decision.plan.flows[self.flow(name).key]

    def other_path(self, name: str) -> Path:
        """A candidate path that the flow does not take, by the second cable at each end."""
        taken = self.planned(name).path or self.flow(name).hashed_path
        return next(
            path
            for path in reversed(self.flow(name).candidates)
            if path != taken and all(self.fabric.parallel_index(link) == 1 for link in path[1:-1])
        )

    def named(self, path: Path) -> str:
        return path_name(path, self.fabric)

    def fail(self, link: int) -> None:
        ends = self.fabric.links[link]
        self.life.fail((ends.source, ends.source_port))


def run(folder: File, test: Callable[[World], Awaitable[None]]) -> None:
    async def within() -> None:
        world = World(folder)
        await world.settle()
        await test(world)
        await world.life.end()

    asyncio.run(within())
