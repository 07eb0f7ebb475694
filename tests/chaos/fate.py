"""The events of a world, drawn from a seed one after the other."""

import asyncio
from collections import deque
from collections.abc import Callable
from ipaddress import IPv4Address
from random import Random

from hostlib.types import FiveTuple, Flow, FlowGroup, Job, Nic, Profile
from tests.chaos.jobs import LoopClock
from tests.chaos.world import CONTROLLER, LEASE_S, World
from topologies.addressing import FLOW_DESTINATION_PORT, UDP_PROTOCOL

_MEAN_GAP_S = 0.25
_MAX_JOBS = 8
_NUM_NAMES = 12
_MAX_LINKS_DOWN = 3
_MAX_BOUNDARIES = 40
"""Within so many messages a kill that is drawn takes place."""
_MAX_DOWN_S = 3.0
_FIRST_CHOSEN_PORT, _NUM_CHOSEN_PORTS = 20_000, 200
_LATEST = 12


class Fate:
    """Runs random events in a world; ``history`` has the latest."""

    def __init__(self, world: World, draws: Random) -> None:
        self.history: deque[str] = deque(maxlen=_LATEST)
        self._world = world
        self._draws = draws
        self._num_jobs = 0
        self._num_chosen = 0
        self._known_jobs: dict[str, tuple[Job, tuple[FlowGroup, ...], str]] = {}
        self._links_down: set[int] = set()
        self._switches_down: set[str] = set()
        self._events: dict[Callable[[], str], int] = {
            self._job_arrives: 22,
            self._job_ends: 8,
            self._job_is_killed: 6,
            self._job_says_more: 10,
            self._lease_is_lost: 4,
            self._link_fails_or_returns: 16,
            self._switch_fails_or_returns: 6,
            self._controller_is_killed: 5,
            self._agent_is_killed: 8,
            self._connection_breaks: 8,
            self._messages_are_late: 8,
            self._request_comes_twice: 7,
        }

    async def happen(self) -> None:
        """Wait for a while, then run one event."""
        await asyncio.sleep(self._draws.expovariate(1 / _MEAN_GAP_S))
        (event,) = self._draws.choices(list(self._events), list(self._events.values()))
        self.history.append(f"{LoopClock().now_s():10.3f} s  {event()}")

    def calm(self) -> None:
        """Run all pending events now, and restore the network, a controller and all agents."""
        self._world.network.heal()
        self._world.start_controller()
        self._world.start_agents()

    def heal(self) -> None:
        """Restore the cables and switches that have failed."""
        world = self._world
        for link in sorted(self._links_down):
            self._set_cable(link, up=True)
        for switch in sorted(self._switches_down):
            world.emulated.set_switch(switch, up=True)
        self._links_down.clear()
        self._switches_down.clear()

    # ---- jobs -------------------------------------------------------------------------------------------------------

    def _job_arrives(self) -> str:
        world, draws = self._world, self._draws
        free = [f"j{number}" for number in range(_NUM_NAMES) if f"j{number}" not in world.jobs]
        if len(world.jobs) >= _MAX_JOBS:
            return self._job_ends()
        name = draws.choice(free)
        known = self._known_jobs.get(name)
        if known is None or draws.random() < 0.5:
            known = self._drawn_job(name)
        self._known_jobs[name] = known
        world.start_job(*known)
        return f"{name} arrives"

    def _drawn_job(self, name: str) -> tuple[Job, tuple[FlowGroup, ...], str]:
        draws = self._draws
        hosts = tuple(draws.sample(self._world.fabric.hosts, draws.randint(2, 3)))
        groups = tuple(self._drawn_group(f"g{number}", hosts) for number in range(draws.randint(1, 3)))
        self._num_jobs += 1
        return Job(name, hosts, 8 * len(hosts), self._drawn_profile()), groups, f"token {self._num_jobs}"

    def _drawn_profile(self) -> Profile:
        draws = self._draws
        return Profile(round(draws.uniform(0.05, 1), 3), round(draws.random(), 2), round(draws.uniform(1, 30), 1))

    def _drawn_group(self, name: str, hosts: tuple[str, ...]) -> FlowGroup:
        """Draw a ring; for one group in five the job chooses the 5-tuples."""
        is_chosen = self._draws.random() < 0.2
        flows = []
        for source, destination in zip(hosts, (*hosts[1:], hosts[0]), strict=True):
            chosen = self._chosen_five_tuple(source, destination) if is_chosen else None
            flows.append(Flow(Nic(source), Nic(destination), 4096 * self._draws.randint(1, 20), 0.0, chosen))
        return FlowGroup(name, tuple(flows))

    def _chosen_five_tuple(self, source: str, destination: str) -> FiveTuple:
        nics = self._world.fabric.nics
        self._num_chosen += 1
        port = _FIRST_CHOSEN_PORT + self._num_chosen % _NUM_CHOSEN_PORTS
        addresses = IPv4Address(nics[source][0].address), IPv4Address(nics[destination][0].address)
        return FiveTuple(*addresses, UDP_PROTOCOL, port, FLOW_DESTINATION_PORT)

    def _job_ends(self) -> str:
        if (name := self._any_job()) is None:
            return "nobody is there to end"
        self._world.end_job(name)
        return f"{name} ends"

    def _job_is_killed(self) -> str:
        if (name := self._any_job()) is None:
            return "nobody is there to be killed"
        job = self._world.jobs[name]

        def kill() -> None:
            if self._world.jobs.get(name) is job:
                self._world.kill_job(name)

        self._at_boundary(kill)
        return f"{name} is killed"

    def _job_says_more(self) -> str:
        if (name := self._any_job()) is None:
            return "nobody is there to say more"
        job = self._world.jobs[name]
        if self._draws.random() < 0.5:
            job.report(self._drawn_profile())
            return f"{name} reports another profile"
        job.add_group(self._drawn_group(f"g{len(job.groups)}", job.job.hosts))
        # Should it come back after a kill, it says all of this again.
        self._known_jobs[name] = job.job, job.groups, job.owner_token
        return f"{name} has another flow group"

    def _lease_is_lost(self) -> str:
        if (name := self._any_job()) is None:
            return "nobody has a lease to lose"
        process = self._world.jobs[name].process.name
        away_s = LEASE_S * self._draws.uniform(0.5, 2)
        self._world.network.isolate(process)
        self._later(away_s, lambda: self._world.network.join(process))
        return f"{name} is cut off for {away_s:.2f} s"

    def _any_job(self) -> str | None:
        return self._draws.choice(sorted(self._world.jobs)) if self._world.jobs else None

    # ---- fabric and controller --------------------------------------------------------------------------------------

    def _link_fails_or_returns(self) -> str:
        fabric = self._world.fabric
        if self._links_down and (len(self._links_down) == _MAX_LINKS_DOWN or self._draws.random() < 0.5):
            link = self._draws.choice(sorted(self._links_down))
            self._links_down.remove(link)
        else:
            between = [link.index for link in fabric.links if fabric.reverse(link.index) > link.index]
            link = self._draws.choice([index for index in between if index not in self._links_down])
            self._links_down.add(link)
        self._set_cable(link, up=link not in self._links_down)
        ends = fabric.links[link]
        return f"{ends.source}-{ends.destination} is {'down' if link in self._links_down else 'up'}"

    def _set_cable(self, link: int, *, up: bool) -> None:
        for direction in (link, self._world.fabric.reverse(link)):
            self._world.emulated.set_link(direction, up=up)

    def _switch_fails_or_returns(self) -> str:
        if self._switches_down:
            switch = self._switches_down.pop()
        else:
            switch = self._draws.choice(self._world.fabric.switches)
            self._switches_down.add(switch)
        up = switch not in self._switches_down
        self._world.emulated.set_switch(switch, up=up)
        return f"{switch} is {'up' if up else 'down'}"

    def _controller_is_killed(self) -> str:
        world = self._world
        down_s = self._draws.uniform(0.05, _MAX_DOWN_S)

        def kill() -> None:
            world.kill_controller()
            self._later(down_s, world.start_controller)

        self._at_boundary(kill)
        return f"the controller is killed, and back after {down_s:.2f} s"

    def _agent_is_killed(self) -> str:
        world, draws = self._world, self._draws
        host, down_s, forgets = draws.choice(world.fabric.hosts), draws.uniform(0.05, _MAX_DOWN_S), draws.random() < 0.2

        def kill() -> None:
            world.kill_agent(host)
            if forgets:
                world.lose_owner_token(host)
            self._later(down_s, lambda: world.start_agent(host))

        self._at_boundary(kill)
        return f"the agent of {host} is killed, and back after {down_s:.2f} s{' without its token' if forgets else ''}"

    # ---- network ----------------------------------------------------------------------------------------------------

    def _connection_breaks(self) -> str:
        name = self._any_process()
        self._world.network.cut(name)
        return f"the connections of {name} break"

    def _messages_are_late(self) -> str:
        name, late_s = self._any_process(), self._draws.expovariate(1)
        self._world.network.stall(name, LoopClock().now_s() + late_s)
        return f"messages to and from {name} are {late_s:.2f} s late"

    def _request_comes_twice(self) -> str:
        name = self._draws.choice(self._clients())
        self._world.network.repeat_next(name)
        return f"the next request of {name} comes twice"

    def _any_process(self) -> str:
        return self._draws.choice((CONTROLLER, *self._world.fabric.switches, *self._clients()))

    def _clients(self) -> list[str]:
        """Return the processes of jobs and of agents, running or not."""
        jobs = sorted(job.process.name for job in self._world.jobs.values())
        return [*jobs, *(f"agent {host}" for host in self._world.fabric.hosts)]

    def _at_boundary(self, action: Callable[[], None]) -> None:
        self._world.network.at_boundary(self._draws.randrange(_MAX_BOUNDARIES), action)

    def _later(self, delay_s: float, action: Callable[[], None]) -> None:
        asyncio.get_running_loop().call_later(delay_s, action)
