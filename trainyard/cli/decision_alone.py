"""The decision for a scenario by itself: registered as its jobs would register, decided, and turned into rules."""

from functools import partial

from controller.planning.decision import Decision
from experiments.scenarios.compatibility import unsupported_reason
from experiments.scenarios.connections import open_connections
from experiments.scenarios.in_process import InProcessController
from policies.plan import Plan
from policies.policy import Policy, decide
from policies.registry import as_policy
from topologies.ecmp import hash_multipliers
from topologies.fabric import Fabric
from topologies.routing import Routing
from workloads.jobs import training_jobs
from workloads.scenario import Scenario


def plan_scenario(scenario: Scenario, fabric: Fabric, policy: Policy | str, previous: Plan | None = None) -> Decision:
    """What the controller decides once all jobs of the scenario have arrived and none has departed.

    ``previous`` is the Plan in force by then. Raises ValueError where the policy cannot decide or a job is to be
    measured, and RegistrationError where the controller would refuse a job.
    """
    if reason := unsupported_reason(scenario):
        raise ValueError(reason)
    routing = Routing(fabric, hash_multipliers(fabric.switches, scenario.seed))
    jobs = training_jobs(scenario, fabric)
    connections = open_connections(jobs, fabric)
    controller = InProcessController(
        *(routing, connections, partial(decide, as_policy(policy)), scenario.steering, scenario.seed),
        scenario.num_levels,
        previous=previous,
        fabric_hash=scenario.hash,
    )
    for job in jobs:
        controller.register(job)
    return controller.decide(max(job.specification.arrival_s for job in jobs))
