"""The decision for a scenario by itself: registered as its jobs would register, decided, and turned into rules."""

from controller.decision import Decision
from controller.policy.catalogue import decide
from controller.policy.plan import Plan
from controller.policy.policy_name import PolicyName
from controller.policy.snapshot import Profile
from controller.registration import FlowGroupRequest, FlowRequest, JobRequest, NicReference
from controller.registry import Registry
from controller.run.connections import Connections, open_connections
from controller.snapshots import Snapshots
from controller.southbound.rules import flow_rules
from controller.steering import source_port_changes, with_source_ports
from topologies.ecmp import hash_multipliers
from topologies.fabric import Fabric
from topologies.routing import Routing
from topologies.steering import Steering
from workloads.jobs import TrainingJob, training_jobs
from workloads.scenario import Scenario

_NUM_LEVELS = 8
_LEASE_S = float("inf")


def plan_scenario(scenario: Scenario, fabric: Fabric, policy: PolicyName, previous: Plan | None = None) -> Decision:
    """What the controller decides once all jobs of the scenario have arrived and none has departed.

    ``previous`` is the Plan in force by then. Raises ValueError where the policy cannot decide, and RegistrationError
    where the controller would refuse a job.
    """
    routing = Routing(fabric, hash_multipliers(fabric.switches, scenario.seed))
    registry = Registry(fabric, _LEASE_S)
    jobs = training_jobs(scenario, fabric)
    connections = open_connections(jobs, fabric)
    assigned = scenario.steering is Steering.SOURCE_PORT
    for job in jobs:
        registry.register_job(_job_request(job), job.specification.arrival_s)
        registry.register_flow_groups(job.name, _flow_group_requests(job, connections, assigned=assigned))
    now_s = max(job.specification.arrival_s for job in jobs)
    snapshot = Snapshots(registry, routing, _NUM_LEVELS, scenario.seed).take(now_s, previous)
    plan = decide(policy, snapshot)
    if assigned:
        snapshot = with_source_ports(snapshot, plan, source_port_changes(plan, snapshot, routing))
    return Decision(1, snapshot, plan, flow_rules(plan, snapshot, routing))


def _job_request(job: TrainingJob) -> JobRequest:
    profile = Profile(job.profile.compute_s, job.profile.comm_start, job.profile.work)
    return JobRequest(job.name, job.hosts, job.gpus, profile)


def _flow_group_requests(job: TrainingJob, connections: Connections, *, assigned: bool) -> list[FlowGroupRequest]:
    return [
        FlowGroupRequest(
            group.name,
            tuple(
                FlowRequest(
                    NicReference(flow.source_host, flow.source_nic),
                    NicReference(flow.destination_host, flow.destination_nic),
                    max(1, round(flow.size_bytes)),
                    flow.offset_s,
                    None if assigned else five_tuple,
                )
                for flow, five_tuple in zip(group.flows, connections[job.name][group.name], strict=True)
            ),
        )
        for group in job.graph.flow_groups
    ]
