"""Loops of policies that are compiled before a test waits for a decision."""

from functools import cache

from controller.planning.warm_up import warm_up
from policies.registry import find_policy
from topologies.ecmp import hash_multipliers
from topologies.routing import Routing
from topologies.specification import StarSpecification


@cache
def compile_loops(policy: str) -> None:
    """Compile what decisions of a policy need, as a controller process does before it serves.

    The threads that plan leave the processor to others: on a busy machine they would compile for longer than tests
    wait.
    """
    fabric = StarSpecification(kind="star", hosts=2, host_link_gbps=100).build()
    warm_up(find_policy(policy), Routing(fabric, hash_multipliers(fabric.switches, seed=1)), num_levels=8)
