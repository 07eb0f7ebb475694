"""One case measured: what each mechanism of each method reaches, the other two being the best there are."""

from dataclasses import dataclass

from experiments.papers.microbench.assumption import Assumption
from experiments.papers.microbench.cases import Case, draw_case
from experiments.papers.microbench.mechanisms import METHODS, Mechanism, levels, on_paths, order, paths
from experiments.papers.microbench.optimum import Optimum


@dataclass(frozen=True, slots=True)
class CaseAsked:
    """A case that is not drawn yet."""

    seed: int
    load_to: float
    assumption: Assumption

    def __str__(self) -> str:
        return f"case of seed {self.seed}"


@dataclass(frozen=True, slots=True)
class Reached:
    """GPU utilisation that one mechanism of one method comes to."""

    mechanism: Mechanism
    policy: str
    utilisation: float


@dataclass(frozen=True, slots=True)
class CaseMeasured:
    """The best utilisation of a case, the worst that each mechanism can make, and what methods reach."""

    seed: int
    load: float
    best: float
    worst: dict[Mechanism, float]
    reached: tuple[Reached, ...]

    def of_best(self, reached: Reached) -> float:
        """U / U_opt."""
        return reached.utilisation / self.best

    def error(self, reached: Reached) -> float:
        """How far from the best towards the worst: 0 to 1, and 0 where all settings come to the same."""
        span = self.best - self.worst[reached.mechanism]
        return (self.best - reached.utilisation) / span if span > 0 else 0.0


def measure_asked(asked: CaseAsked) -> CaseMeasured:
    """Draw a case and measure it."""
    return measure(draw_case(asked.seed, asked.load_to, asked.assumption))


def measure(case: Case) -> CaseMeasured:
    """Enumerate a case, and score all methods in it."""
    optimum = Optimum(case)
    pinned = on_paths(case.snapshot, optimum.paths)

    def computed(mechanism: Mechanism, policy: str) -> float:
        match mechanism:
            case Mechanism.PATHS:
                return optimum.of_paths(paths(policy, case.snapshot))
            case Mechanism.PRIORITIES:
                return optimum.of_order(order(policy, pinned))
            case Mechanism.COMPRESSION:
                return optimum.of_levels(levels(policy, pinned, optimum.order))

    worst = {
        Mechanism.PATHS: optimum.worst_paths(),
        Mechanism.PRIORITIES: optimum.worst_order(),
        Mechanism.COMPRESSION: optimum.worst_compression(),
    }
    reached = tuple(
        # Of what is as good as the best but for rounding, any may be the best.
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
