"""A scenario on the simulator: fluid flows, and decisions made in the same process by the same code as live.

Between two events nothing happens and nothing is computed.
"""

from collections.abc import Callable, Coroutine
from dataclasses import replace
from functools import partial
from typing import TypeVar

from controller.links.damping import Damping
from controller.links.link_health import LinkHealth
from experiments.scenarios.connections import open_connections
from experiments.scenarios.in_process import InProcessController
from experiments.scenarios.in_process_session import InProcessSession
from experiments.scenarios.job_driver import Progress
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
    told_as: Callable[[TaskGraph], TaskGraph] | None = None,
) -> RunResult:
    """Run a scenario to the departure of its last job.

    ``told_as`` makes of a job's task graph the one that is run and registered, where its flow groups are to be told
    otherwise than they are (``workloads.arrangement``); the result has the groups as told.

    Raises ValueError where the jobs do not fit or the policy cannot decide, RegistrationError where the controller
    would refuse a job.
    """
    policy = as_policy(policy)
    fabric = scenario.topology.build()
    routing = Routing(fabric, hash_multipliers(fabric.switches, scenario.seed))
    jobs = training_jobs(scenario, fabric)
    if told_as is not None:
        jobs = tuple(replace(job, graph=told_as(job.graph)) for job in jobs)
    alone_s = {job.name: run_isolated(job, routing).iteration_time_s for job in jobs}
    connections = open_connections(jobs, fabric)
    may_fail = bool(scenario.events)
    control = policy.rate_control(enforcement)
    network = SimulatedNetwork(routing, jobs, connections, policy, control, scenario.steering, may_fail=may_fail)

    def new_controller() -> InProcessController:
        return InProcessController(
            *(routing, connections, partial(decide, policy), scenario.steering, scenario.seed, scenario.num_levels),
            links=LinkHealth(fabric, Damping()) if may_fail else None,
            fabric_hash=scenario.hash,
        )

    outages = Outages(fabric)
    session = InProcessSession(new_controller, jobs, network, outages, alone_s)
    loop = RunLoop(scenario, jobs, network, session, outages, alone_s)
    return result_of(
        *(scenario, policy.name, routing, _result_of(loop.to_the_end(on_progress))),
        backend="simulator",
        enforcement=enforcement,
        events=scenario.events,
    )


def _result_of(coroutine: Coroutine[object, None, _ResultT]) -> _ResultT:
    """What a coroutine returns that waits for nothing: it needs no event loop, and may run beside one."""
    try:
        coroutine.send(None)
    except StopIteration as ended:
        result: _ResultT = ended.value
        return result
    raise RuntimeError("a run on the simulator has waited for something")
