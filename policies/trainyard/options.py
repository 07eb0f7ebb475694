"""Options of the policy ``trainyard``."""

from dataclasses import dataclass
from enum import Enum, StrEnum


@dataclass(frozen=True, slots=True)
class ModelOptions:
    """How long the fluid model runs.

    Attributes:
        num_phases: From how many random phases of the jobs against each other it starts.
        iterations: Length of a run, in iterations of the longest job.
        warm_up_iterations: How many of these are warm-up and not measured.
        max_iterations: A run ends after so many iterations of all jobs together, even if the longest has done fewer.
    """

    num_phases: int = 2
    iterations: int = 16
    warm_up_iterations: int = 3
    max_iterations: int = 400


class InitialOrder(StrEnum):
    """An order that the search begins with."""

    FLUID_BOUND = "fluid bound"
    """By the fluid bound and Smith's rule."""

    CRUX = "crux"
    """Crux's order on the same paths."""


class PathRule(Enum):
    """How jobs choose paths: flow by flow, each the candidate whose most used link is used least."""

    SMITH = (False, 1, 1.0)
    CRUX = (True, 1, 1.0)
    CRUX_TWICE = (True, 2, 1.0)
    CRUX_SPREAD = (True, 2, 1.5)
    SMITH_SPREAD = (False, 2, 4.0)

    @property
    def by_intensity(self) -> bool:
        """Whether jobs choose in order of W / t, as in Crux, or else of W / T over their window."""
        return self.value[0]

    @property
    def rounds(self) -> int:
        """How often jobs choose: from the second round on, given the paths of all others."""
        return self.value[1]

    @property
    def own_weight(self) -> float:
        """How much other flows of the same job weigh, compared with flows of other jobs."""
        return self.value[2]


_MODEL = ModelOptions()


@dataclass(frozen=True, slots=True)
class TrainyardOptions:
    """How the policy searches, and when it keeps what is in force.

    Attributes:
        model: Options of the fluid model.
        initial_orders: Orders that the search begins with; they share its budget. The best one counts where the fluid
            model is not run.
        path_rules: The policy takes the paths of the rule on which the best initial order scores most.
        evaluations: How often the search for an order may run the fluid model. Levels of new groups may take as many
            runs again, and the levels of an order half as many.
        min_evaluations: Where ``model_steps`` does not allow so many runs, the model is not run at all.
        model_steps: About how many steps of its inner loop all runs of the model may take.
        max_groups: The model is not run for components with more flow groups.
        bound_steps: Steps of the solver of the fluid bound.
        max_candidate_links: Where the candidate paths of a component have more links together, only flows without a
            path choose one, and only by the first rule.
        min_gain: A change must gain this fraction over keeping what is in force.
        min_bound_share: What a job lacks of this fraction of its share in the fluid bound counts twice.
        max_slowdown: The largest factor over its iteration time alone that a job should suffer; None: no limit.
        num_orders: How many orders the compression tries, as in Crux; None: as many as the size of the graph suggests.

    Raises:
        ValueError: A value is out of range; the message names the field.
    """

    model: ModelOptions = _MODEL
    initial_orders: tuple[InitialOrder, ...] = (InitialOrder.FLUID_BOUND, InitialOrder.CRUX)
    path_rules: tuple[PathRule, ...] = tuple(PathRule)
    evaluations: int = 100
    min_evaluations: int = 2
    model_steps: float = 2e7
    max_groups: int = 64
    bound_steps: int = 100
    max_candidate_links: int = 1 << 18
    min_gain: float = 0.01
    min_bound_share: float = 0.5
    max_slowdown: float | None = None
    num_orders: int | None = None

    def __post_init__(self) -> None:
        if not self.initial_orders:
            raise ValueError("initial_orders must name at least one order")
        if not self.path_rules:
            raise ValueError("path_rules must name at least one rule")
        if self.evaluations < 0:
            raise ValueError(f"evaluations must not be negative, not {self.evaluations}")
        if self.bound_steps < 2:
            raise ValueError(f"bound_steps must be at least 2, not {self.bound_steps}")
        if not self.min_gain >= 0:
            raise ValueError(f"min_gain must not be negative, not {self.min_gain}")
        if not 0 <= self.min_bound_share <= 1:
            raise ValueError(f"min_bound_share must be from 0 to 1, not {self.min_bound_share}")
        if self.max_slowdown is not None and not self.max_slowdown >= 1:
            raise ValueError(f"max_slowdown must be at least 1, not {self.max_slowdown}")
