"""A decision for many jobs between random hosts of a small Clos."""

import random

from controller.planning.decision import Decision
from controller.planning.decision_pipeline import DecisionPipeline
from controller.planning.snapshots import Snapshots
from controller.registry.registry import Registry
from controller.registry.requests import FlowGroupRequest, FlowRequest, JobRequest, NicReference
from policies.job import Profile
from policies.policy import decide
from policies.registry import find_policy
from topologies.ecmp import hash_multipliers
from topologies.fabric import Fabric
from topologies.routing import Routing
from topologies.specification import ClosSpecification


def decision_for_many(num_jobs: int, seed: int) -> tuple[Registry, Decision, Fabric]:
    """Plan jobs of two hosts with up to three flows each, some of which send nothing."""
    fabric = ClosSpecification(
        kind="clos", tors=3, aggs=2, hosts_per_tor=3, host_link_gbps=100, uplink_gbps=100, uplinks_per_pair=2
    ).build()
    routing, chance = Routing(fabric, hash_multipliers(fabric.switches, seed=1)), random.Random(seed)
    registry = Registry(fabric, lease_s=10.0)
    for number in range(num_jobs):
        name, hosts = f"job-{number}", tuple(chance.sample(fabric.hosts, 2))
        registry.register_job(JobRequest(name, hosts, 2, Profile(1.0, 0.5, chance.uniform(1, 9))), 0.0)
        there, back = (NicReference(host, 0) for host in hosts)
        ends = [chance.choice([(there, back), (back, there)]) for _ in range(chance.randrange(1, 4))]
        flows = tuple(FlowRequest(*pair, chance.choice([0, 10**8, 10**9]), 0.0) for pair in ends)
        registry.register_flow_groups(name, [FlowGroupRequest("ring", flows)])
    policy = find_policy("crux")
    pipeline = DecisionPipeline(lambda snapshot: decide(policy, snapshot))
    snapshot = Snapshots(registry, routing, num_levels=8, seed=1).take(0.0, None)
    draft = pipeline.draft(snapshot, pipeline.decide(snapshot), routing)
    return registry, pipeline.finish(1, draft, (), routing), fabric
