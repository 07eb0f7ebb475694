"""The decision for a scenario, without running it."""

from dataclasses import asdict, dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Any

from controller.planning.decision import Decision
from controller.planning.directives import directives_of
from controller.registry.errors import RegistrationError
from experiments.scenarios.backend import unplannable_reason
from experiments.scenarios.connections import open_connections
from experiments.scenarios.in_process import InProcessController
from policies.plan import JobPlan, Plan
from policies.policy import Policy, decide
from policies.registry import DEFAULT_POLICY, as_policy
from topologies.ecmp import hash_multipliers
from topologies.fabric import Fabric
from topologies.routing import Routing
from trainyard.frames import frame_of
from trainyard.scenarios import ScenarioLike, build_scenario
from workloads.jobs import training_jobs
from workloads.scenario import Scenario

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure


_JOB_KEYS = ("name", "intensity", "correction_factor", "priority", "rank", "level")


@dataclass(frozen=True, slots=True)
class PlannedFlow:
    """How one flow of a job travels: the nodes of its path, its level (7 the most urgent) and its order at the host.

    ``links`` says for every hop which of the parallel links it takes.
    """

    job: str
    group: str
    flow: int
    source: str
    destination: str
    path: tuple[str, ...]
    links: tuple[int, ...]
    level: int
    order: int
    source_port: int


@dataclass(frozen=True)
class PlanResult:
    """The Plan of a policy for a scenario: ``jobs`` in order of rank, ``flows`` by job, group and number."""

    scenario: str
    policy: str
    jobs: tuple[JobPlan, ...]
    flows: tuple[PlannedFlow, ...]
    num_rules: int
    decision: Decision = field(repr=False, compare=False)

    @classmethod
    def of(cls, scenario: str, decision: Decision, fabric: Fabric) -> "PlanResult":
        """Return the result of a decision on a fabric."""
        directives = directives_of(decision)
        flows = []
        for job in decision.snapshot.jobs:
            for flow, directive in zip(job.flows, directives[job.name].flows, strict=True):
                nodes = fabric.nodes_of(directive.path)
                flows.append(
                    PlannedFlow(
                        *flow.key,
                        nodes[0],
                        nodes[-1],
                        nodes,
                        tuple(fabric.parallel_index(link) for link in directive.path),
                        directive.level,
                        directive.order,
                        flow.five_tuple.source_port,
                    )
                )
        return cls(scenario, decision.plan.policy, decision.plan.jobs, tuple(flows), decision.num_rules, decision)

    def to_dict(self) -> dict[str, Any]:
        """Return the object that ``trainyard plan -o json`` prints."""
        return {
            "policy": self.policy,
            "jobs": [{key: getattr(job, key) for key in _JOB_KEYS} for job in self.jobs],
            "flows": [asdict(flow) | {"path": list(flow.path), "links": list(flow.links)} for flow in self.flows],
            "num_rules": self.num_rules,
        }

    def to_frame(self) -> "pd.DataFrame":
        """Return a pandas DataFrame with a row for each flow. Raises ImportError where pandas is not installed."""
        return frame_of([asdict(flow) for flow in self.flows])

    def plot(self) -> "Figure":
        """Return a figure of the bytes that each job sends in an iteration, jobs in order of rank with their levels."""
        from experiments.report.figures import plot_chart
        from experiments.report.findings import Bar, BarChart
        from experiments.report.numbers import quantity

        size_bytes = {job.name: sum(flow.size_bytes for flow in job.flows) for job in self.decision.snapshot.jobs}
        most = max(size_bytes.values(), default=0.0) or 1.0
        bars = tuple(
            Bar(f"{job.name}: level {job.level}", f"{quantity(size_bytes[job.name])}B", size_bytes[job.name] / most)
            for job in self.jobs
        )
        return plot_chart(BarChart(f"Bytes of an iteration under {self.policy}, jobs by rank", bars))


def plan_scenario(scenario: Scenario, fabric: Fabric, policy: Policy | str, previous: Plan | None = None) -> Decision:
    """Decide as the controller would once all jobs of the scenario have arrived and none has departed.

    Args:
        scenario: A scenario that was checked as a whole.
        fabric: The fabric that its topology builds.
        policy: A policy or the name of a registered one.
        previous: The Plan that is in force by then.

    Raises:
        PolicyError: No policy of that name is registered.
        ValueError: The policy cannot decide, or a job is to be measured.
        RegistrationError: The controller would refuse a job.
    """
    if reason := unplannable_reason(scenario):
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


def plan(scenario: ScenarioLike, policy: Policy | str | None = None) -> PlanResult:
    """Decide for a scenario once all its jobs have arrived and none has departed; nothing is started.

    Args:
        scenario: A scenario, its mapping, or the path of its file.
        policy: A policy or the name of a registered one; None: the scenario's own, else Crux.

    Raises:
        ScenarioError: The scenario cannot be used.
        PolicyError: No policy of that name is registered.
        ValueError: The policy cannot decide, or the controller would refuse a job.
    """
    accepted = build_scenario(scenario)
    fabric = accepted.topology.build()
    chosen = as_policy(policy or accepted.policy or DEFAULT_POLICY)
    try:
        return PlanResult.of(accepted.name, plan_scenario(accepted, fabric, chosen), fabric)
    except RegistrationError as error:
        raise ValueError(str(error)) from error
