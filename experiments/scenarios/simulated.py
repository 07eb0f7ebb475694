"""Runs a scenario on the simulator: fluid flows, and the controller's decisions in the same process."""

from collections.abc import Callable, Coroutine
from dataclasses import replace
from functools import partial
from typing import TypeVar

from controller.links.damping import Damping
from controller.links.link_health import LinkHealth
from experiments.scenarios.connections import open_connections
from experiments.scenarios.in_process import InProcessController, InProcessSession
from experiments.scenarios.job_driver import Progress
from experiments.scenarios.ordinary_hashes import as_ordinary_switches_hash
from experiments.scenarios.outages import Outages
from experiments.scenarios.results import RunResult
from experiments.scenarios.run_loop import RunLoop
from experiments.scenarios.run_record import result_of
from experiments.scenarios.simulated_network import SimulatedNetwork
from policies.enforcement import Enforcement
from policies.policy import Policy, decide
from policies.registry import as_policy
from topologies.ecmp import hash_multipliers
from topologies.routing import Routing
from workloads.isolated_run import run_isolated
from workloads.jobs import training_jobs
from workloads.scenario import Scenario
from workloads.task_graph import TaskGraph

_ResultT = TypeVar("_ResultT")


def run_on_simulator(
    scenario: Scenario,
    policy: Policy | str,
    enforcement: Enforcement = Enforcement.LEVELS,
    *,
    on_progress: Progress,
    transform_graph: Callable[[TaskGraph], TaskGraph] | None = None,
    base_routing: Callable[[Routing], Routing] | None = None,
) -> RunResult:
    """Run a scenario to the departure of its last job.

    Args:
        scenario: A valid scenario.
        policy: A policy, or the name of a registered one.
        enforcement: Whether flows have the levels of switches or the policy's own rates.
        on_progress: Called as the run goes on.
        transform_graph: Returns the task graph to run and to register in place of a job's own, for example with other
            flow groups (``workloads.arrangement``).
        base_routing: Returns the routing that somebody else has filled into the switches, in place of the controller's.

    Raises:
        ValueError: The jobs do not fit, or the policy cannot decide.
        RegistrationError: The controller would refuse a job.
    """
    policy = as_policy(policy)
    fabric = scenario.topology.build()
    believed = Routing(fabric, hash_multipliers(fabric.switches, scenario.seed))
    if base_routing is not None:
        believed = base_routing(believed)
    routing = as_ordinary_switches_hash(believed, scenario.seed)
    jobs = training_jobs(scenario, fabric)
    if transform_graph is not None:
        jobs = tuple(replace(job, graph=transform_graph(job.graph)) for job in jobs)
    isolated = {job.name: run_isolated(job, routing) for job in jobs}
    isolated_s = {name: alone.iteration_time_s for name, alone in isolated.items()}
    connections = open_connections(jobs, fabric)
    may_fail = bool(scenario.events)
    follows_switches = may_fail or base_routing is not None or bool(fabric.ordinary_switches)
    control = policy.rate_control(enforcement)
    network = SimulatedNetwork(
        *(routing, jobs, connections, policy, control, scenario.steering), may_fail=follows_switches
    )

    def new_controller() -> InProcessController:
        return InProcessController(
            *(believed, connections, partial(decide, policy), scenario.steering, scenario.seed, scenario.num_levels),
            links=LinkHealth(fabric, Damping()) if may_fail else None,
            fabric_hash=scenario.hash,
        )

    outages = Outages(fabric)
    session = InProcessSession(new_controller, jobs, network, outages, isolated_s)
    loop = RunLoop(scenario, jobs, network, session, outages, isolated_s)
    return result_of(
        *(scenario, policy.name, routing, _run_synchronously(loop.run_to_end(on_progress)), isolated),
        backend="simulator",
        enforcement=enforcement,
        events=scenario.events,
    )


def _run_synchronously(coroutine: Coroutine[object, None, _ResultT]) -> _ResultT:
    """Return the result of a coroutine that never waits; it needs no event loop, and may run beside one."""
    try:
        coroutine.send(None)
    except StopIteration as ended:
        result: _ResultT = ended.value
        return result
    raise RuntimeError("a run on the simulator waited")
