"""What may be chosen of the policy ``trainyard``."""

from dataclasses import dataclass
from enum import Enum, StrEnum


@dataclass(frozen=True, slots=True)
class ModelOptions:
    """How long the model runs: in iterations of the longest job, a part of them as warm-up, from so many phases.

    Jobs much shorter than the longest end the run early, after ``most_iterations`` of all together.
    """

    num_phases: int = 2
    iterations: int = 16
    warm_up_iterations: int = 3
    most_iterations: int = 400


class Start(StrEnum):
    """An order that the search begins with."""

    FLUID_BOUND = "fluid bound"
    """The policy's first order."""

    CRUX = "crux"
    """Crux's, on the same paths."""


class PathRule(Enum):
    """How jobs choose paths: in which order, flow by flow the candidate whose most used link is used least.

    Whether W / t says who chooses first, as in Crux, or W / T over the window that a job has; in how many rounds, in
    those after the first given all others; and how much what flows of the same job use weighs beside what others do.
    """

    SMITH = (False, 1, 1.0)
    CRUX = (True, 1, 1.0)
    CRUX_TWICE = (True, 2, 1.0)
    CRUX_SPREAD = (True, 2, 1.5)
    SMITH_SPREAD = (False, 2, 4.0)

    @property
    def by_intensity(self) -> bool:
        return self.value[0]

    @property
    def rounds(self) -> int:
        return self.value[1]

    @property
    def own_weight(self) -> float:
        return self.value[2]


_MODEL = ModelOptions()


@dataclass(frozen=True, slots=True)
class TrainyardOptions:
    """How the policy searches, and when it lets things be. Raises ValueError, naming the field, for what cannot be.

    Orders that the search begins with, ``starts``, share its budget; where there is none, the better one stands. A
    search among orders of jobs that meet runs the fluid model at most ``evaluations`` times, and less often where that
    would take more than about ``model_steps`` steps of a loop; levels for new groups may take as much again, those for
    an order half of it. Where not even ``fewest_evaluations`` can be had, or the jobs have more than ``most_groups``
    flow groups, it is not run at all. ``bound_steps`` are those of the solver of the fluid bound. Of the paths by all
    ``path_rules`` those are taken on which the better start scores most, and flows that have paths may get others;
    where candidates of all together have more than ``most_candidate_links`` links, the first rule alone counts, for
    flows that have none. What gains less than ``least_gain``, relative, over keeping what is in force is not done. What
    a job misses, by the model, of ``least_of_bound`` times its share in the fluid bound counts twice. ``max_slowdown``,
    where given, is the largest factor over its iteration time alone that any job should suffer. ``num_orders`` as in
    Crux.
    """

    model: ModelOptions = _MODEL
    starts: tuple[Start, ...] = (Start.FLUID_BOUND, Start.CRUX)
    path_rules: tuple[PathRule, ...] = tuple(PathRule)
    evaluations: int = 100
    fewest_evaluations: int = 2
    model_steps: float = 2e7
    most_groups: int = 64
    bound_steps: int = 100
    most_candidate_links: int = 1 << 18
    least_gain: float = 0.01
    least_of_bound: float = 0.5
    max_slowdown: float | None = None
    num_orders: int | None = None

    def __post_init__(self) -> None:
        if not self.starts:
            raise ValueError("starts must name at least one order")
        if not self.path_rules:
            raise ValueError("path_rules must name at least one rule")
        if self.evaluations < 0:
            raise ValueError(f"evaluations must not be negative, not {self.evaluations}")
        if self.bound_steps < 2:
            raise ValueError(f"bound_steps must be at least 2, not {self.bound_steps}")
        if not self.least_gain >= 0:
            raise ValueError(f"least_gain must not be negative, not {self.least_gain}")
        if not 0 <= self.least_of_bound <= 1:
            raise ValueError(f"least_of_bound must be from 0 to 1, not {self.least_of_bound}")
        if self.max_slowdown is not None and not self.max_slowdown >= 1:
            raise ValueError(f"max_slowdown must be at least 1, not {self.max_slowdown}")
