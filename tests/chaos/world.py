"""A world in one process: fabric, controller, jobs, agents, and the network between them, all of which may fail."""

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from itertools import count
from pathlib import Path
from random import Random
from typing import Any

from controller.config import ControllerConfig
from controller.process.core import ControllerCore
from controller.southbound.gnmi import GnmiPortMonitor
from controller.southbound.p4runtime.switches import P4RuntimeSouthbound
from controller.store.store import Store
from hostlib.types import FlowGroup, Job
from tests.chaos.agents import Agent
from tests.chaos.channels import in_memory
from tests.chaos.jobs import LoopClock, TrainingJob
from tests.chaos.ledger import Ledger, NotedConnection, lost_registrations
from tests.chaos.network import Network
from tests.chaos.processes import Process
from tests.chaos.switches import Switches, emulated_fabric
from tests.chaos.traffic import Traffic
from topologies.ecmp import hash_multipliers
from topologies.routing import Routing
from topologies.specification import ClosSpecification
from topologies.steering import Steering

TOPOLOGY = ClosSpecification(
    kind="clos", tors=3, aggs=2, hosts_per_tor=2, host_link_gbps=100, uplink_gbps=100, uplinks_per_pair=1
)
LEASE_S = 3.0
CONTROLLER = "controller"
_ADDRESS = "controller:4790"


class World:
    """A fabric under a controller, with probing hosts and jobs that come and go; create it inside its virtual loop."""

    def __init__(self, traffic: Traffic, draws: Random, policy: str, steering: Steering, database: Path) -> None:
        self.traffic = traffic
        self.emulated = traffic.fabric
        self.fabric = self.emulated.fabric
        self.network = Network(draws)
        self.ledger = Ledger(LEASE_S, LoopClock().now_s)
        self.switches = Switches(self.emulated, self.network)
        self.config = ControllerConfig(
            agents=True,
            insecure=True,  # the network is memory
            topology=TOPOLOGY,
            switches=self.switches.addresses,
            policy=policy,
            steering=steering,
            lease_s=LEASE_S,
            database=str(database),
        )
        self.routing = Routing(self.fabric, hash_multipliers(self.fabric.switches, self.config.hash_seed))
        self.controller_addresses: tuple[str, ...] = (_ADDRESS,)
        self.jobs: dict[str, TrainingJob] = {}
        self.agents: dict[str, Agent] = {}
        """By host."""
        self.control: Process | None = None
        self.controller: ControllerCore | None = None
        self.southbound: P4RuntimeSouthbound | None = None
        self.may_train = asyncio.Event()
        self.may_train.set()
        self._draws = draws
        self._sessions = count(1)
        self._owner_tokens = {host: f"{host}'s" for host in self.fabric.hosts}

    @property
    def dead_links(self) -> frozenset[int]:
        """The links that no packet passes."""
        return frozenset(link.index for link in self.fabric.links if not self.emulated.is_up(link.index))

    @contextmanager
    def entered(self) -> Iterator[None]:
        """Make all connections in this world meanwhile; they end with it."""
        asyncio.get_running_loop().set_exception_handler(self._note_unhandled)
        connection = partial(NotedConnection, self.ledger)
        with in_memory(self.network, connection):
            try:
                yield
            finally:
                self.kill_controller()
                for job in tuple(self.jobs):
                    self.kill_job(job)
                for host in tuple(self.agents):
                    self.kill_agent(host)

    # ---- the controller ---------------------------------------------------------------------------------------------

    def start_controller(self) -> None:
        """Start a controller, unless one runs."""
        if self.control is None:
            self.control = Process(CONTROLLER)
            work = self.control.spawn(self._control(self.control))
            work.add_done_callback(partial(self._note_end, self.control))

    def kill_controller(self) -> None:
        """Kill the controller, if one runs."""
        if self.control is not None:
            self.control.kill()
            self.control = self.controller = self.southbound = None

    async def _control(self, process: Process) -> None:
        """Do what ``controller.process.daemon`` does, without its sockets."""
        config, clock = self.config, LoopClock()
        assert config.database is not None
        store = Store.open(config.database, clock)
        process.at_end(store.database.engine.dispose)  # the files of a process that has ended are closed
        on_write = store.trail.record
        southbound = P4RuntimeSouthbound(
            config.switch_addresses, self.routing, config.pipeline, config.election_id, on_write
        )
        async with southbound:
            controller = ControllerCore(config, self.routing, southbound, clock, store)
            self._note_start(controller)
            self.network.listen(_ADDRESS, process, controller.handlers)
            self.controller, self.southbound = controller, southbound
            async with GnmiPortMonitor(config.switch_addresses, controller.ports), asyncio.TaskGroup() as tasks:
                for work in (controller.planner.run(), controller.follow_ports(), controller.record_silences()):
                    tasks.create_task(work).add_done_callback(partial(self._note_end, process))

    def _note_start(self, controller: ControllerCore) -> None:
        """Check that a restarted controller knows everything acknowledged before it receives any request."""
        lost = lost_registrations(self.ledger.jobs, controller.registry)
        self.network.failures += [f"after a restart {wrong}" for wrong in lost]

    # ---- jobs -------------------------------------------------------------------------------------------------------

    def start_job(self, job: Job, groups: tuple[FlowGroup, ...], owner_token: str) -> None:
        """Start a job, unless it runs."""
        addresses = self.controller_addresses
        arrived = TrainingJob(job, groups, owner_token, addresses, self.traffic, self.may_train, self._draws)
        arrived.work.add_done_callback(partial(self._note_end, arrived.process))
        self.jobs[job.name] = arrived

    def end_job(self, name: str) -> None:
        """Withdraw a job and end it."""
        self.jobs.pop(name).end()

    def kill_job(self, name: str) -> None:
        """Kill the process of a job."""
        self.jobs.pop(name).process.kill()

    # ---- agents -----------------------------------------------------------------------------------------------------

    def start_agents(self) -> None:
        """Start an agent on every host."""
        for host in self.fabric.hosts:
            self.start_agent(host)

    def start_agent(self, host: str) -> None:
        """Start the agent of a host, unless it runs."""
        if host not in self.agents:
            nics, token = self.traffic.nics, self._owner_tokens[host]
            agent = self.agents[host] = Agent(host, next(self._sessions), token, self.controller_addresses, nics)
            agent.work.add_done_callback(partial(self._note_end, agent.process))

    def kill_agent(self, host: str) -> None:
        """Kill the agent of a host, if it runs."""
        if host in self.agents:
            self.agents.pop(host).process.kill()

    def lose_owner_token(self, host: str) -> None:
        """Make the next agent of a host use a token that the controller does not know."""
        self._owner_tokens[host] += "'"

    def _note_end(self, process: Process, work: "asyncio.Task[None]") -> None:
        """Record a process that ended by an error without being killed."""
        if process.is_alive:
            reason = "cancelled" if work.cancelled() else repr(work.exception())
            self.network.failures.append(f"{process.name} ended by itself: {reason}")

    def _note_unhandled(self, _: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
        """Record an exception that no task handled."""
        self.network.failures.append(f"{context['message']}: {context.get('exception')!r}")


def traffic_of_a_fabric() -> Traffic:
    """Return the traffic of a fabric with empty switches, on which nothing is sent yet."""
    return Traffic(emulated_fabric(TOPOLOGY.build()))
