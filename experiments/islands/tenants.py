"""Tenants of many islands: their programs lowered for hosts of a fabric, as jobs of the simulator."""

from dataclasses import dataclass
from functools import cached_property
from random import Random

from experiments.islands.program_builder import TimedProgram
from experiments.islands.programs import PROGRAMS
from hostlib.task_graph import Transfer
from hostlib.types import FlowGroup, Nic
from runtime.lowering.assign import Placement, host_cpus_of
from runtime.lowering.subprograms import LoweredProgram, lower
from runtime.network.transfers import Template, template
from runtime.store.buffers import HOST
from topologies.clos import ClosSpecification
from workloads import placement as gpu_placement
from workloads.jobs import TrainingJob
from workloads.scenario import JobSpecification
from workloads.task_graph import Computation, FlowGroupSpec, FlowSpec, GroupTransfer, Task, TaskGraph
from workloads.workload import PhasesWorkload

GBPS_PER_DEVICE = 100 / 128
"""Each device's part of its host's NIC."""
ISLANDS_PER_TOR = 4
LARGEST_START_S = 5.0
"""Tenants start at random times up to this."""


@dataclass(frozen=True)
class Cluster:
    """Islands of equally many devices, shared among tenants, and the Clos fabric between their hosts.

    A host has one NIC. Tenant t has the islands t, t + T, t + 2T and so on, where T is the number of tenants: each ToR
    serves islands of several tenants. ToRs have half as much capacity upwards as downwards.
    """

    islands: int
    devices: int
    islands_per_tenant: int
    hosts_per_island: int = 4

    def __post_init__(self) -> None:
        for name, number, divisor in (
            ("islands", self.islands, self.islands_per_tenant),
            ("devices", self.devices, self.hosts_per_island),
        ):
            if number < 1 or number % divisor:
                raise ValueError(f"{name}: expected a multiple of {divisor}, got {number}")

    @property
    def tenants(self) -> int:
        """How many tenants there are."""
        return self.islands // self.islands_per_tenant

    @property
    def devices_per_host(self) -> int:
        """How many devices a host has."""
        return self.devices // self.hosts_per_island

    @property
    def topology(self) -> ClosSpecification:
        """The fabric: 16 hosts a ToR, with 8 uplinks of the rate of a NIC, to 8 aggregation switches."""
        gbps = GBPS_PER_DEVICE * self.devices_per_host
        hosts_per_tor = self.hosts_per_island * min(ISLANDS_PER_TOR, self.islands)
        return ClosSpecification(
            kind="clos",
            tors=-(-self.islands // ISLANDS_PER_TOR),
            aggs=max(1, hosts_per_tor // 2),
            hosts_per_tor=hosts_per_tor,
            uplink_gbps=gbps,
            host_link_gbps=gbps,
            gpus_per_host=self.devices_per_host,
        )

    def hosts(self, island: int) -> range:
        """Return the numbers of the hosts of an island."""
        return range(island * self.hosts_per_island, (island + 1) * self.hosts_per_island)


@dataclass(frozen=True)
class Tenant:
    """A tenant of a cluster with a program of a kind, which starts its first run at ``start_s``."""

    cluster: Cluster
    number: int
    kind: str
    start_s: float

    @property
    def name(self) -> str:
        """Its name."""
        return f"{self.kind} {self.number}"

    @cached_property
    def slices(self) -> dict[int, Placement]:
        """By slice, an island each: all of its devices, and under the number for it the CPUs of its hosts."""
        found = {}
        for slice_ in range(self.cluster.islands_per_tenant):
            island = self.number + slice_ * self.cluster.tenants
            hosts = self.cluster.hosts(island)
            per_host = self.cluster.devices_per_host
            of_devices = tuple(host for host in hosts for _ in range(per_host))
            name = f"island-{island}"
            found[slice_] = Placement(name, of_devices, tuple(range(per_host)) * len(hosts))
            found[host_cpus_of(slice_)] = Placement(name, tuple(hosts), (HOST,) * len(hosts))
        return found

    @cached_property
    def program(self) -> TimedProgram:
        """What it runs again and again."""
        return PROGRAMS[self.kind]({number: len(of.hosts) for number, of in self.slices.items()})

    @cached_property
    def lowered(self) -> LoweredProgram:
        """Its program on its devices."""
        return lower(self.program.program, self.slices, ())

    @cached_property
    def template(self) -> Template:
        """What it tells the controller. Raises ValueError where it sends nothing."""
        hosts = {host for placement in self.slices.values() for host in placement.hosts}
        found = template(self.lowered, self.program.seconds.__getitem__, {host: Nic(f"h{host}") for host in hosts})
        if found is None or found.graph is None:
            raise ValueError(f"{self.name}: it sends nothing between islands, or too much")
        return found

    def job(self) -> TrainingJob:
        """Return the job that plays its runs one after another."""
        of = self.template
        per_host = self.cluster.devices_per_host
        workload = PhasesWorkload(
            type="phases", compute_s=of.profile.compute_s, comm_start=of.profile.comm_start, flows=()
        )
        specification = JobSpecification(
            name=self.name.replace(" ", "-"),
            hosts=of.hosts,
            gpus_per_host=per_host,
            arrival_s=self.start_s,
            iterations=1,
            workload=workload,
        )
        gpus = dict.fromkeys(of.hosts, tuple(range(per_host)))
        return TrainingJob(specification, gpu_placement.Placement(gpus, dict.fromkeys(of.hosts, (0,))), self._graph())

    def _graph(self) -> TaskGraph:
        graph = self.template.graph
        assert graph is not None
        calls = iter(self.lowered.calls)
        tasks: list[Task] = []
        for task in graph.tasks:
            if isinstance(task, Transfer):
                tasks.append(GroupTransfer(task.flow_group, task.after, task.flows))
            else:
                placed = next(calls)
                tasks.append(
                    Computation(placed.call.name, self._computing(placed.placement), task.duration_s, task.after)
                )
        return TaskGraph(tuple(tasks), tuple(map(_specified, self.template.groups)))

    def _computing(self, placement: int) -> tuple[str, ...]:
        """Return the hosts whose devices compute; none for what runs on their CPUs."""
        of = self.lowered.placements[placement]
        return () if HOST in of.devices else tuple(f"h{host}" for host in of.shards_by_host)


def _specified(group: FlowGroup) -> FlowGroupSpec:
    return FlowGroupSpec(
        group.name,
        tuple(
            FlowSpec(
                *(flow.source.host, flow.source.index, flow.destination.host, flow.destination.index),
                *(flow.size_bytes, flow.offset_s),
            )
            for flow in group.flows
        ),
    )


def tenants(cluster: Cluster, seed: int) -> tuple[Tenant, ...]:
    """Return the tenants of a cluster, kinds in turn, with start times drawn by the seed."""
    chance = Random(seed)
    kinds = tuple(PROGRAMS)
    return tuple(
        Tenant(cluster, number, kinds[number % len(kinds)], chance.uniform(0.0, LARGEST_START_S))
        for number in range(cluster.tenants)
    )
