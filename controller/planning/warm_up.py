"""A decision before the first that counts, so that none has to wait for machine code to be made or loaded."""

from controller.planning.snapshots import Snapshots
from controller.registry.registration import FlowGroupRequest, FlowRequest, JobRequest, NicReference
from controller.registry.registry import Registry
from policies.compiled import Loop
from policies.policy import Policy, decide
from policies.profile import Profile
from topologies.routing import Routing

_LEASE_S = 1.0


def rehearse(policy: Policy, routing: Routing, num_levels: int) -> None:
    """Have the loops of policies compiled from now on, and decide on two made-up jobs that meet."""
    Loop.compile_all()
    hosts = routing.fabric.hosts
    if len(hosts) < 2:
        return  # nobody has anybody to send to
    registry = Registry(routing.fabric, _LEASE_S)
    ends = hosts[0], hosts[-1]
    there, back = (NicReference(host, 0) for host in ends)
    for name, work in (("one", 1.0), ("other", 2.0)):
        registry.register_job(JobRequest(name, ends, 2, Profile(1.0, 0.5, work)), 0.0)
        flows = (FlowRequest(there, back, 10**9, 0.0), FlowRequest(back, there, 10**9, 0.0))
        registry.register_flow_groups(name, [FlowGroupRequest("both ways", flows)])
    decide(policy, Snapshots(registry, routing, num_levels, seed=1).take(0.0, None))
