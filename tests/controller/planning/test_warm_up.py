"""After the warm-up a decision compiles nothing."""

import sys

import pytest

from controller.planning.snapshots import Snapshots
from controller.planning.warm_up import warm_up
from controller.registry.registry import Registry
from controller.registry.requests import FlowGroupRequest, FlowRequest, JobRequest, NicReference
from policies.jit import Kernel
from policies.job import Profile
from policies.policy import decide
from policies.registry import find_policy
from topologies.ecmp import hash_multipliers
from topologies.routing import Routing
from topologies.specification import StarSpecification


def _made() -> dict[str, tuple[object, ...]]:
    """The argument types that every loop of the policies is compiled for."""
    loops = {
        f"{module}.{name}": value
        for module, loaded in sys.modules.items()
        if module.startswith("policies")
        for name, value in vars(loaded).items()
        if isinstance(value, Kernel)
    }
    return {name: tuple(vars(loop)["compiled"].signatures) for name, loop in loops.items() if "compiled" in vars(loop)}


def test_a_decision_on_other_jobs_compiles_nothing_after_the_warm_up(routing: Routing) -> None:
    warm_up(find_policy("crux"), routing, num_levels=8)
    made = _made()
    registry = Registry(routing.fabric, lease_s=10.0)
    for number in range(3):
        name = f"job-{number}"
        registry.register_job(JobRequest(name, ("h0", "h1", "h2"), 24, Profile(1.0, 0.5, 1.0 + number)), 0.0)
        ends = [NicReference(host, 0) for host in ("h0", "h1", "h2")]
        flows = tuple(FlowRequest(ends[n], ends[n - 1], 10**9, 0.0) for n in range(3))
        registry.register_flow_groups(name, [FlowGroupRequest("ring", flows)])
    decide(find_policy("crux"), Snapshots(registry, routing, 8, seed=1).take(0.0, None))
    assert any(made.values())
    assert _made() == made


@pytest.mark.parametrize("hosts", [1, 2])
def test_the_smallest_fabrics_can_be_warmed_up_on(hosts: int) -> None:
    fabric = StarSpecification(kind="star", hosts=hosts, host_link_gbps=100).build()
    warm_up(find_policy("crux"), Routing(fabric, hash_multipliers(fabric.switches, seed=1)), num_levels=1)
