"""The controller in the run's own process: the daemon's registry, Snapshots and decision pipeline, without the daemon.

A run on the simulator speaks with it through ``InProcessSession``.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING

from controller.links.link_health import LinkHealth
from controller.planning.decision import Decision
from controller.planning.decision_pipeline import DecisionPipeline
from controller.planning.snapshots import Snapshots
from controller.registry.registry import Registry
from controller.registry.requests import (
    FlowGroupRequest,
    FlowRequest,
    JobRequest,
    NicReference,
    TaskGraphRequest,
    TransferRequest,
)
from experiments.scenarios.connections import Connections
from experiments.scenarios.interfaces import ControllerAnswer
from experiments.scenarios.outages import Outages
from experiments.scenarios.run_record import PlanSummary
from hostlib.start_shift import StartShift
from policies.job import Profile
from policies.plan import Plan
from policies.snapshot import Snapshot
from policies.task_graph import Computation
from topologies.ecmp import FabricHash
from topologies.routing import Routing
from topologies.steering import Steering
from workloads import task_graph
from workloads.jobs import TrainingJob

if TYPE_CHECKING:
    from experiments.scenarios.simulated_network import SimulatedNetwork

_LEASE_S = float("inf")


class InProcessController:
    """Registers jobs as hosts would, and decides when asked.

    ``routing`` is the base routing of the last decision. Paths avoid the dead links of ``links``, which the owner keeps
    up to date; without ``links`` every link is usable. ``previous`` is a Plan in force from the start.
    """

    def __init__(
        self,
        routing: Routing,
        connections: Connections,
        policy: Callable[[Snapshot], Plan],
        steering: Steering,
        seed: int,
        num_levels: int = 8,
        previous: Plan | None = None,
        links: LinkHealth | None = None,
        fabric_hash: FabricHash = FabricHash.KNOWN,
    ) -> None:
        self.links = links
        self.routing = routing
        self._previous = previous
        self._number = 0
        self._connections = connections
        self._pipeline = DecisionPipeline(policy, steering, fabric_hash)
        self._registry = Registry(routing.fabric, _LEASE_S)
        self._snapshots = Snapshots(self._registry, routing, num_levels, seed)

    def register(self, job: TrainingJob) -> None:
        """Register a job with its flow groups and its task graph.

        Raises:
            RegistrationError: The controller would refuse the job.
        """
        self._registry.register_job(job_request(job), job.specification.arrival_s)
        assigned = self._pipeline.steering is Steering.SOURCE_PORT
        groups = flow_group_requests(job, self._connections, assigned=assigned)
        self._registry.register_flow_groups(job.name, groups, task_graph_request(job))

    def deregister(self, job: str) -> None:
        """Withdraw a job."""
        self._registry.deregister(job)

    def decide(self, now_s: float) -> Decision:
        """Decide for the registered jobs as a live controller would.

        Raises:
            ValueError: The policy cannot decide, or its Plan is invalid.
        """
        snapshot = self._take_snapshot(now_s)
        self._previous = self._pipeline.decide(snapshot)
        draft = self._pipeline.draft(snapshot, self._previous, self.routing)
        changed = self._registry.change_source_ports(draft.port_changes)
        self._number += 1
        return self._pipeline.finish(self._number, draft, changed, self.routing)

    def plan(self, now_s: float) -> tuple[Snapshot, Plan]:
        """Return the Snapshot and the policy's Plan alone, unchecked and without rules: traces need many of them.

        Raises:
            ValueError: The policy cannot decide.
        """
        snapshot = self._take_snapshot(now_s)
        self._previous = self._pipeline.policy(snapshot)
        return snapshot, self._previous

    def is_rerouted(self, now_s: float) -> bool:
        """Whether the dead links have changed since the last decision."""
        return self.links is not None and self.links.dead_links(now_s) != self.routing.dead

    def _take_snapshot(self, now_s: float) -> Snapshot:
        if self.links is not None:
            self.routing = self.routing.without(self.links.dead_links(now_s))
        return self._snapshots.take(now_s, self._previous, self.routing)


class InProcessSession:
    """A run's session with in-process controllers, each of which ``new_controller`` makes.

    The controller decides when a live one would: when jobs have come or gone, or the dead links have changed.
    """

    renewal_s = None

    def __init__(
        self,
        new_controller: Callable[[], InProcessController],
        jobs: Sequence[TrainingJob],
        network: "SimulatedNetwork",
        outages: Outages,
        isolated_s: Mapping[str, float],
    ) -> None:
        self._new_controller = new_controller
        self._controller: InProcessController | None = new_controller()
        self._jobs = {job.name: job for job in jobs}
        self._network = network
        self._outages = outages
        self._isolated_s = isolated_s
        self._shifts = {job.name: StartShift(job.specification.arrival_s) for job in jobs}
        self._time_shifts_s: Mapping[str, float | None] = {}
        self._registered: dict[str, TrainingJob] = {}
        self._decision: Decision | None = None
        self._has_changed = False

    @property
    def is_open(self) -> bool:
        """Whether there is a controller."""
        return self._controller is not None

    async def move_clocks(self, now_s: float) -> None:
        """Do nothing: there are no leases to renew."""

    async def update(
        self, now_s: float, arrived: Iterable[str], departed: Iterable[str], *, reports_ports: bool
    ) -> ControllerAnswer:
        """See ``ControllerSession``."""
        controller = self._controller
        assert controller is not None
        for name in arrived:
            self._registered[name] = self._jobs[name]
            controller.register(self._jobs[name])
            self._has_changed = True
        for name in departed:
            del self._registered[name]
            controller.deregister(name)
            self._has_changed = True
        if reports_ports and controller.links is not None:
            controller.links.set_port_states(self._outages.port_states, now_s)
        if self._has_changed or controller.is_rerouted(now_s):
            self._decision = controller.decide(now_s)
            self._has_changed = False
        next_timer_s = None if controller.links is None else controller.links.next_release_s(now_s)
        return ControllerAnswer(0 if self._decision is None else self._decision.number, next_timer_s)

    async def apply_plan(self) -> PlanSummary | None:
        """Apply the decision in force to the network and to the time shifts of jobs."""
        decision, controller = self._decision, self._controller
        if decision is None or controller is None:
            return None
        self._time_shifts_s = {job.name: job.time_shift_s for job in decision.plan.jobs}
        self._network.follow(decision, controller.routing)
        return PlanSummary.of(decision) if decision.plan.jobs else None

    def delay_s(self, job: str, now_s: float) -> float:
        """See ``ControllerSession``."""
        return self._shifts[job].delay_s(now_s, self._time_shifts_s.get(job), self._isolated_s[job])

    async def crash(self) -> None:
        """Drop the controller."""
        self._controller = None

    async def restart(self, _: float) -> None:
        """Start a controller with an empty memory, and register the jobs with it again."""
        self._controller = self._new_controller()
        self._has_changed = True
        for job in self._registered.values():
            self._controller.register(job)


def job_request(job: TrainingJob) -> JobRequest:
    """Return the registration of a job, with the profile that it reports."""
    reported = job.reported_profile
    return JobRequest(job.name, job.hosts, job.gpus, Profile(reported.compute_s, reported.comm_start, reported.work))


def flow_group_requests(job: TrainingJob, connections: Connections, *, assigned: bool) -> list[FlowGroupRequest]:
    """Return the registrations of a job's flow groups; where the controller ``assigned`` ports, without 5-tuples."""
    return [
        FlowGroupRequest(
            group.name,
            tuple(
                FlowRequest(
                    NicReference(flow.source_host, flow.source_nic),
                    NicReference(flow.destination_host, flow.destination_nic),
                    job.reporting_error.reported_bytes(flow.size_bytes),
                    flow.offset_s,
                    None if assigned else five_tuple,
                )
                for flow, five_tuple in zip(group.flows, connections[job.name][group.name], strict=True)
            ),
        )
        for group in job.graph.flow_groups
    ]


def task_graph_request(job: TrainingJob) -> TaskGraphRequest:
    """Return the registration of what an iteration of a job does."""
    return TaskGraphRequest(
        tuple(
            Computation(task.duration_s, task.after)
            if isinstance(task, task_graph.Computation)
            else TransferRequest(task.group, task.flows or (), task.after)
            for task in job.reported_tasks
        )
    )
