"""A controller with a database, recording switches and driven time, which can be killed and restarted."""

import random
from pathlib import Path

from controller.config import ControllerConfig, RecordConfig
from controller.process.core import ControllerCore
from controller.record.lines import text_of
from controller.registry.requests import (
    FlowGroupRequest,
    FlowRequest,
    InstanceRequest,
    JobRequest,
    NicReference,
    TaskGraphRequest,
    TransferRequest,
)
from controller.southbound.recording import RecordingSouthbound
from controller.store.facts import LAST_PLAN_NUMBER, record_lines
from controller.store.store import Store
from controller.switch_addresses import SwitchAddress
from experiments.scenarios.driven.clock import DrivenClock
from policies.job import Profile
from policies.task_graph import Computation
from topologies.ecmp import hash_multipliers
from topologies.routing import Routing
from topologies.specification import ClosSpecification, Topology
from topologies.steering import Steering

CLOS = ClosSpecification(
    kind="clos", tors=3, aggs=2, hosts_per_tor=2, nics_per_host=2, host_link_gbps=100, uplink_gbps=100
)


class Life:
    """A controller on a database, from start to start."""

    def __init__(
        self, database: Path | str, policy: str, steering: Steering = Steering.RULE, plans: int = 10_000
    ) -> None:
        self.database = str(database)
        self.clock = DrivenClock(100.0)
        self.policy, self.steering, self.plans = policy, steering, plans
        self._chance = random.Random(f"{policy}")
        self._number = 0

    def start(self, topology: Topology = CLOS, hash_seed: int = 1) -> None:
        """Start a controller, where the one before has just ended without a word."""
        fabric = topology.build()
        switches = tuple(SwitchAddress(name=name, address="127.0.0.1:1") for name in fabric.switches)
        self.config = ControllerConfig(
            topology=topology,
            switches=switches,
            policy=self.policy,
            steering=self.steering,
            num_levels=4,
            lease_s=2.0,
            policy_time_limit_s=None,  # however busy the machine is
            hash_seed=hash_seed,
            record=RecordConfig(plans=self.plans),
        )
        self.store = Store.open(self.database, self.clock)
        self.southbound = RecordingSouthbound(fabric.switches)
        self.routing = routing = Routing(fabric, hash_multipliers(fabric.switches, hash_seed))
        self.controller = ControllerCore(self.config, routing, self.southbound, self.clock, self.store)

    async def end(self) -> None:
        await self.controller.planner.flush_record()
        await self.store.close()

    async def live(self, events: int) -> None:
        """Jobs come, tell, and go; a Plan after each event."""
        registry, planner = self.controller.registry, self.controller.planner
        for _ in range(events):
            now_s = self.clock.now_s()
            names = [job.request.name for job in registry.jobs]
            for name in names:
                registry.renew(name, now_s)
            what = self._chance.random()
            if len(names) < 3 or what < 0.5:
                name = f"job-{self._number}"
                self._number += 1
                registry.register_job(self._job(name), now_s, "token")
                graph = self._graph() if self._number % 2 else None
                registry.register_flow_groups(name, [self._group("g"), self._group("h")], graph)
            elif what < 0.7:
                registry.deregister(self._chance.choice(names))
            elif what < 0.85:
                registry.report_profile(self._chance.choice(names), self._profile())
            else:
                name = self._chance.choice(names)
                registry.update_instances(name, {"g": InstanceRequest(self._number)}, now_s)
            await registry.commit()
            planner.mark_changed()
            self.clock.advance_to(now_s + self._chance.random())
            await planner.settle()

    def fail(self, *ports: tuple[str, int]) -> None:
        """These ports of switches are down, and all others up."""
        states = {switch: {port: False for named, port in ports if named == switch} for switch, _ in ports}
        self.controller.planner.links.set_port_states(states, self.clock.now_s())

    def _job(self, name: str) -> JobRequest:
        self._hosts = tuple(self._chance.sample([f"h{number}" for number in range(6)], 3))
        return JobRequest(name, self._hosts, 16, self._profile())

    def _profile(self) -> Profile:
        return Profile(self._chance.uniform(0.1, 1.0), self._chance.uniform(0.1, 0.9), self._chance.uniform(1.0, 50.0))

    def _group(self, group: str) -> FlowGroupRequest:
        flows = []
        for number in range(max(1, self._chance.randrange(4))):
            source, destination = self._chance.sample(self._hosts, 2)
            ends = NicReference(source, number % 2), NicReference(destination, 0)
            flows.append(FlowRequest(*ends, self._chance.randrange(10**10), self._chance.choice((0.0, 0.01))))
        return FlowGroupRequest(group, tuple(flows))

    def _graph(self) -> TaskGraphRequest:
        first, second = Computation(0.1 * self._number), Computation(1 / 3, (0,))
        return TaskGraphRequest((first, TransferRequest("g", after=(0,)), second, TransferRequest("h", after=(1, 2))))

    def lines(self, first: int = 0, last: int = LAST_PLAN_NUMBER) -> list[str]:
        return self.store.database.read(lambda connection: list(text_of(record_lines(first, last, connection))))
