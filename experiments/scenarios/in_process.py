"""The controller's decisions without its process: the same registry, Snapshots and decision pipeline."""

from collections.abc import Callable

from controller.links.link_health import LinkHealth
from controller.planning.decision import Decision
from controller.planning.decision_pipeline import DecisionPipeline
from controller.planning.snapshots import Snapshots
from controller.registry.registry import Registry
from controller.registry.requests import FlowGroupRequest, FlowRequest, JobRequest, NicReference
from experiments.scenarios.connections import Connections
from policies.job import Profile
from policies.plan import Plan
from policies.snapshot import Snapshot
from topologies.ecmp import FabricHash
from topologies.routing import Routing
from topologies.steering import Steering
from workloads.jobs import TrainingJob

_LEASE_S = float("inf")


class InProcessController:
    """Registers jobs as hosts would, and decides when it is asked; ``previous`` is a Plan in force from the start.

    Nothing is led over the dead ones of ``links``, which its owner keeps up to date; without, all are there.
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
        """Register a job with its flow groups. Raises RegistrationError where the controller would refuse it."""
        self._registry.register_job(job_request(job), job.specification.arrival_s)
        assigned = self._pipeline.steering is Steering.SOURCE_PORT
        self._registry.register_flow_groups(job.name, flow_group_requests(job, self._connections, assigned=assigned))

    def deregister(self, job: str) -> None:
        """Withdraw a job."""
        self._registry.deregister(job)

    def decide(self, now_s: float) -> Decision:
        """The Decision for the jobs that are registered, as a live controller makes it; ``routing`` is what it is for.

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
        """The Snapshot and the policy's Plan alone, unchecked and without rules: traces need many of them.

        Raises:
            ValueError: The policy cannot decide.
        """
        snapshot = self._take_snapshot(now_s)
        self._previous = self._pipeline.policy(snapshot)
        return snapshot, self._previous

    def is_rerouted(self, now_s: float) -> bool:
        """Whether other links are dead than those that the last decision left out."""
        return self.links is not None and self.links.dead_links(now_s) != self.routing.dead

    def _take_snapshot(self, now_s: float) -> Snapshot:
        if self.links is not None:
            self.routing = self.routing.without(self.links.dead_links(now_s))
        return self._snapshots.take(now_s, self._previous, self.routing)


def job_request(job: TrainingJob) -> JobRequest:
    told = job.reported_profile
    return JobRequest(job.name, job.hosts, job.gpus, Profile(told.compute_s, told.comm_start, told.work))


def flow_group_requests(job: TrainingJob, connections: Connections, *, assigned: bool) -> list[FlowGroupRequest]:
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
