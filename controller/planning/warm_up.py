"""Compiles the loops of policies before the first decision, which would wait for it otherwise."""

from controller.planning.snapshots import Snapshots
from controller.registry.registry import Registry
from controller.registry.requests import FlowGroupRequest, FlowRequest, JobRequest, NicReference
from policies.jit import Kernel
from policies.job import Profile
from policies.policy import Policy, decide
from topologies.routing import Routing

_LEASE_S = 1.0


def warm_up(policy: Policy, routing: Routing, num_levels: int) -> None:
    """Compile all loops, and have the policy decide on two invented jobs that share links."""
    Kernel.compile_all()
    hosts = routing.fabric.hosts
    if len(hosts) < 2:
        return  # no pair of hosts to send between
    registry = Registry(routing.fabric, _LEASE_S)
    ends = hosts[0], hosts[-1]
    there, back = (NicReference(host, 0) for host in ends)
    for name, work in (("one", 1.0), ("other", 2.0)):
        registry.register_job(JobRequest(name, ends, 2, Profile(1.0, 0.5, work)), 0.0)
        flows = (FlowRequest(there, back, 10**9, 0.0), FlowRequest(back, there, 10**9, 0.0))
        registry.register_flow_groups(name, [FlowGroupRequest("both ways", flows)])
    decide(policy, Snapshots(registry, routing, num_levels, seed=1).take(0.0, None))
