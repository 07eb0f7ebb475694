"""The controller's decisions without its process: the same registry, Snapshots, policies, steering and rules."""

from collections.abc import Callable

from controller.links.link_health import LinkHealth
from controller.planning.decision import Decision
from controller.planning.failover_rules import best_effort_where_cut_off
from controller.planning.snapshots import Snapshots
from controller.planning.steering import source_port_changes, with_source_ports
from controller.registry.registration import FlowGroupRequest, FlowRequest, JobRequest, NicReference
from controller.registry.registry import Registry
from controller.rules.flow_rules import flow_rules
from experiments.scenarios.connections import Connections
from policies.plan import Plan
from policies.profile import Profile
from policies.snapshot import Snapshot
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
    ) -> None:
        self.links = links
        self.routing = routing
        self._previous = previous
        self._number = 0
        self._connections = connections
        self._policy = policy
        self._steering = steering
        self._registry = Registry(routing.fabric, _LEASE_S)
        self._snapshots = Snapshots(self._registry, routing, num_levels, seed)

    def register(self, job: TrainingJob) -> None:
        """Register a job with its flow groups. Raises RegistrationError where the controller would refuse it."""
        self._registry.register_job(job_request(job), job.specification.arrival_s)
        assigned = self._steering is Steering.SOURCE_PORT
        self._registry.register_flow_groups(job.name, flow_group_requests(job, self._connections, assigned=assigned))

    def deregister(self, job: str) -> None:
        """Withdraw a job."""
        self._registry.deregister(job)

    def decide(self, now_s: float) -> Decision:
        """The Plan for the jobs that are registered; ``routing`` is what it is for. Raises ValueError where the policy
        cannot decide."""
        snapshot, plan = self.plan(now_s)
        if self._steering is Steering.SOURCE_PORT:
            changes = source_port_changes(plan, snapshot, self.routing)
            changed = self._registry.change_source_ports(changes)
            snapshot = with_source_ports(snapshot, plan, {key: changes[key] for key in changed})
        rules = flow_rules(plan, snapshot, self.routing)
        self._number += 1
        return Decision(self._number, snapshot, plan, rules)

    def plan(self, now_s: float) -> tuple[Snapshot, Plan]:
        """The Plan alone, without rules or changed source ports, and what it was decided on; raises as ``decide``."""
        if self.links is not None:
            self.routing = self.routing.without(self.links.dead(now_s))
        snapshot = self._snapshots.take(now_s, self._previous, self.routing)
        self._previous = best_effort_where_cut_off(self._policy(snapshot), snapshot)
        return snapshot, self._previous


def job_request(job: TrainingJob) -> JobRequest:
    told = job.told_profile
    return JobRequest(job.name, job.hosts, job.gpus, Profile(told.compute_s, told.comm_start, told.work))


def flow_group_requests(job: TrainingJob, connections: Connections, *, assigned: bool) -> list[FlowGroupRequest]:
    return [
        FlowGroupRequest(
            group.name,
            tuple(
                FlowRequest(
                    NicReference(flow.source_host, flow.source_nic),
                    NicReference(flow.destination_host, flow.destination_nic),
                    job.told.of_bytes(flow.size_bytes),
                    flow.offset_s,
                    None if assigned else five_tuple,
                )
                for flow, five_tuple in zip(group.flows, connections[job.name][group.name], strict=True)
            ),
        )
        for group in job.graph.flow_groups
    ]
