"""The mechanisms of policies, one at a time: paths, priorities on the best paths, compression of the best order.

Where paths are given, they are the only candidates that flows have, so that the policy itself decides the rest.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum

from experiments.papers.microbench.cases import Assumption, Case, draw_case
from experiments.papers.microbench.components import Choice
from experiments.papers.microbench.optimum import Optimum, Order
from policies.crux.policy import compressed_levels
from policies.flows import Flow
from policies.intensity import intensity, iterations
from policies.job import Job
from policies.plan_builder import equal_classes, own_levels
from policies.policy import decide
from policies.registry import find_policy
from policies.snapshot import Snapshot
from policies.traffic import Traffic
from policies.trainyard import steps
from topologies.paths import Paths


class Mechanism(StrEnum):
    """One of the decisions of a policy."""

    PATHS = "paths"
    PRIORITIES = "priorities"
    COMPRESSION = "compression"


METHODS: Mapping[Mechanism, tuple[str, ...]] = {
    Mechanism.PATHS: ("crux", "taccl-star", "trainyard"),
    Mechanism.PRIORITIES: (
        "crux",
        "taccl-star",
        "sincronia",
        "varys",
        "trainyard",
    ),
    Mechanism.COMPRESSION: ("crux", "sincronia", "varys", "trainyard"),
}
"""The policies measured: the paper's and ours. The paper has Varys's compression only in its figure 13."""


def paths(policy: str, snapshot: Snapshot) -> Choice:
    """Return the paths that a policy chooses."""
    plan = decide(find_policy(policy), snapshot)
    return tuple(
        list(flow.candidates).index(plan.flows[flow.key].path or flow.hashed_path)
        for job in snapshot.jobs
        for flow in job.flows
    )


def on_paths(snapshot: Snapshot, choice: Choice) -> Snapshot:
    """Return the same jobs, each flow with the chosen path as its only candidate."""
    chosen = iter(choice)

    def with_chosen_path(flow: Flow) -> Flow:
        path = flow.candidates[next(chosen)]
        return replace(flow, candidates=Paths([path]), hashed_path=path)

    def of_job(job: Job) -> Job:
        groups = (replace(group, flows=tuple(map(with_chosen_path, group.flows))) for group in job.flow_groups)
        return replace(job, flow_groups=tuple(groups))

    return replace(snapshot, jobs=tuple(map(of_job, snapshot.jobs)))


def order(policy: str, routed: Snapshot) -> Order:
    """Return the order of jobs that a policy chooses on the given paths."""
    number = {job.name: position for position, job in enumerate(routed.jobs)}
    if policy == "trainyard":
        return tuple(number[name] for name in steps.order(routed))
    return tuple(number[job.name] for job in decide(find_policy(policy), routed).jobs)


def levels(policy: str, routed: Snapshot, order: Order) -> tuple[int, ...]:
    """Return the level of each job under a policy's compression of this order on the given paths."""
    if policy == "trainyard":
        by_name = steps.levels_in_order(routed, [routed.jobs[job].name for job in order])
        return tuple(by_name[job.name] for job in routed.jobs)
    by_place = _COMPRESSIONS[policy](routed, order)
    return tuple(by_place[order.index(job)] for job in range(len(order)))


def _crux(routed: Snapshot, order: Order) -> Sequence[int]:
    loads = Traffic.with_candidates(routed.jobs).loads(len(routed.links))
    isolated = iterations(routed.jobs, loads.transfer_s(routed.links.rates_bps))
    intensities = [intensity(routed.jobs[job], isolated[job]) or 0.0 for job in order]
    return compressed_levels(routed, loads, order, intensities)


_COMPRESSIONS: Mapping[str, Callable[[Snapshot, Order], Sequence[int]]] = {
    "crux": _crux,
    "sincronia": lambda routed, order: own_levels(len(order), routed.num_levels),
    "varys": lambda routed, order: equal_classes(len(order), routed.num_levels),
}


@dataclass(frozen=True, slots=True)
class CaseParameters:
    """The parameters of a case that is not drawn yet."""

    seed: int
    load_to: float
    assumption: Assumption

    def __str__(self) -> str:
        return f"case of seed {self.seed}"


@dataclass(frozen=True, slots=True)
class Reached:
    """The GPU utilisation under one mechanism of one policy."""

    mechanism: Mechanism
    policy: str
    utilisation: float


@dataclass(frozen=True, slots=True)
class CaseMeasured:
    """A case's best utilisation, the worst with each mechanism, and the utilisation that each policy reaches."""

    seed: int
    load: float
    best: float
    worst: dict[Mechanism, float]
    reached: tuple[Reached, ...]

    def of_best(self, reached: Reached) -> float:
        """Return U / U_opt."""
        return reached.utilisation / self.best

    def error(self, reached: Reached) -> float:
        """Return the distance from the best towards the worst, 0 to 1; 0 where all settings are equally good."""
        span = self.best - self.worst[reached.mechanism]
        return (self.best - reached.utilisation) / span if span > 0 else 0.0


def draw_and_measure(parameters: CaseParameters) -> CaseMeasured:
    """Draw a case and measure it."""
    return measure(draw_case(parameters.seed, parameters.load_to, parameters.assumption))


def measure(case: Case) -> CaseMeasured:
    """Find the best and worst of a case by enumeration, and measure every policy."""
    optimum = Optimum(case)
    routed = on_paths(case.snapshot, optimum.paths)

    def computed(mechanism: Mechanism, policy: str) -> float:
        match mechanism:
            case Mechanism.PATHS:
                return optimum.of_paths(paths(policy, case.snapshot))
            case Mechanism.PRIORITIES:
                return optimum.of_order(order(policy, routed))
            case Mechanism.COMPRESSION:
                return optimum.of_levels(levels(policy, routed, optimum.order))

    worst = {
        Mechanism.PATHS: optimum.worst_paths(),
        Mechanism.PRIORITIES: optimum.worst_order(),
        Mechanism.COMPRESSION: optimum.worst_compression(),
    }
    reached = tuple(
        # Rounding may leave a value just above the optimum.
        Reached(mechanism, policy, min(computed(mechanism, policy), optimum.computed) / optimum.gpu_seconds)
        for mechanism, policies in METHODS.items()
        for policy in policies
    )
    return CaseMeasured(
        case.scenario.seed,
        case.load,
        optimum.computed / optimum.gpu_seconds,
        {mechanism: value / optimum.gpu_seconds for mechanism, value in worst.items()},
        reached,
    )
