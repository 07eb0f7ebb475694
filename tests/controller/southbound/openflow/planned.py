"""Plans drawn at random, and the switches that carry them out by entries."""

from collections.abc import Sequence
from dataclasses import replace
from random import Random

from controller.planning.snapshots import Snapshots
from controller.registry.registry import Registry
from controller.registry.requests import FlowGroupRequest, FlowRequest, JobRequest, NicReference
from controller.rules.flow_rules import RulesBySwitch, flow_rules
from controller.rules.job_rules import job_rules
from controller.southbound.openflow.entries import Entry
from controller.southbound.openflow.routes import base_entries
from controller.southbound.openflow.rule_entries import rule_entries
from policies.flows import Flow
from policies.job import Profile
from policies.plan import FlowPlan, JobPlan, Plan
from policies.snapshot import Snapshot
from tests.controller.southbound.openflow.interpreter import Packet, Switch
from topologies.addressing import TCP_PROTOCOL, FiveTuple
from topologies.ecmp import FabricHash, hash_multipliers
from topologies.fabric import Fabric
from topologies.openflow_specification import Queues
from topologies.routing import Routing

LEVELS = 8
DESCRIBED, MEASURED = "described", "measured"


def route(fabric: Fabric) -> Routing:
    return Routing(fabric, hash_multipliers(fabric.switches, seed=1))


class Decided:
    """A job with flows, a Plan that gives each of them some candidate path or none, and perhaps a job without flows.

    ``job_level`` is that of the job without flows; None where there is none.
    """

    def __init__(self, routing: Routing, random: Random, num_flows: int = 8) -> None:
        fabric = routing.fabric
        nics = [NicReference(host, nic.index) for host in fabric.hosts for nic in fabric.nics[host]]
        pairs = [(one, other) for one in nics for other in nics if one.host != other.host]
        drawn = random.choices(pairs, k=num_flows) if pairs else []
        flows = tuple(
            FlowRequest(*pair, 1_000_000, 0.0, tcp_port=5_000 + number if number % 2 else None)
            for number, pair in enumerate(drawn)
        )
        registry = Registry(fabric, lease_s=10.0)
        if flows:
            profile = Profile(compute_s=1.0, comm_start=0.5, work=16.0)
            registry.register_job(JobRequest(DESCRIBED, fabric.hosts, 16, profile), now_s=0.0)
            registry.register_flow_groups(DESCRIBED, [FlowGroupRequest("group", flows)])
        self.job_level = random.choice([None, *range(LEVELS)]) if flows else None
        if self.job_level is not None:
            registry.register_job(JobRequest(MEASURED, fabric.hosts, 16, None), now_s=0.0)
        self.routing = routing
        self.snapshot: Snapshot = Snapshots(registry, routing.whole, LEVELS, seed=1).take(0.0, None, routing)
        self.flows: Sequence[Flow] = [
            flow for job in self.snapshot.jobs for flow in job.registered_flows if not flow.is_cut_off
        ]
        plans = {
            flow.key: FlowPlan(
                random.choice([None, *flow.candidates]) if flow.candidates else None, random.randrange(LEVELS), 0
            )
            for job in self.snapshot.jobs
            for flow in job.registered_flows
        }
        jobs = tuple(
            JobPlan(job.name, rank, 0, None, None, None, None, "") for rank, job in enumerate(self.snapshot.jobs)
        )
        self.plan = Plan("drawn", jobs, plans)

    def rules(self, fabric_hash: FabricHash = FabricHash.UNKNOWN) -> RulesBySwitch:
        of_flows = flow_rules(self.plan, self.snapshot, self.routing, fabric_hash)
        of_jobs = job_rules(self.plan, self.snapshot, self.routing.fabric)
        return {
            switch: (
                *(replace(rule, level=self.job_level or 0) for rule in of_jobs.get(switch, ())),
                *of_flows.get(switch, ()),
            )
            for switch in self.routing.fabric.switches
        }

    def entries(self, queues: Queues) -> dict[str, list[Entry]]:
        rules = self.rules()
        return {
            switch: base_entries(switch, self.routing, queues)
            + rule_entries(switch, rules[switch], self.routing, queues)
            for switch in self.routing.fabric.switches
        }

    def switches(self, queues: Queues) -> dict[str, Switch]:
        return {switch: Switch(entries) for switch, entries in self.entries(queues).items()}

    def class_of(self, flow: Flow, sent_dscp: int) -> int:
        """The class that a flow's packets have behind the first switch, if they were sent with this DSCP."""
        level = self.plan.flows[flow.key].level
        return level if level > 0 or self.job_level is not None else sent_dscp >> 3


def packet_of(flow: FiveTuple, dscp: int = 0) -> Packet:
    return Packet(
        flow.source_address,
        flow.destination_address,
        flow.protocol,
        (flow.source_port, flow.destination_port),
        dscp,
    )


def other_flow(flow: FiveTuple) -> FiveTuple:
    """A flow between the same NICs that nobody has registered."""
    return FiveTuple(flow.source_address, flow.destination_address, TCP_PROTOCOL, 1, 1)
