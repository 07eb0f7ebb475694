"""Options of the policy ``trainyard``."""

from dataclasses import dataclass
from enum import Enum, StrEnum


@dataclass(frozen=True, slots=True)
class ModelOptions:
    """How long the model of a component runs, and when it gives up.

    Attributes:
        steps: A run takes about so many steps (``PlayingJobs.steps``); its length follows from that.
        least_iterations: It is at least so long, in iterations of the slowest job.
        most_iterations: It is at most so long.
        warm_up_share: The first part of it, which is not measured.
        compute_jitter: The relative standard deviation of computation times, so that no plan depends on a coincidence.
        early_share: After this share of a run, one that is clearly worse than the best plan known ends.
        early_margin: It is clearly worse by this fraction.
    """

    steps: float = 1e4
    least_iterations: float = 6.0
    most_iterations: float = 32.0
    warm_up_share: float = 0.15
    compute_jitter: float = 0.02
    early_share: float = 0.12
    early_margin: float = 0.03


class InitialOrder(StrEnum):
    """An order of the jobs that the search begins with."""

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
        model: Options of the model.
        initial_orders: Orders that the search begins with. The best one counts where the model is not run.
        path_rules: Paths that the search begins with.
        may_share: Whether jobs may share a level although there are levels enough.
        evaluations: How often the search of a component may run the model.
        event_evaluations: How often it may after an event, where jobs of the component have levels and paths already.
        full_search_jobs: In a cluster with more jobs, a search has fewer runs in proportion.
        min_evaluations: Where there would be fewer runs, the model is not run at all.
        model_steps: About how many steps all runs of a search may take.
        max_modelled_jobs: The model is not run for components with more jobs.
        bound_steps: Steps of the solver of the fluid bound.
        max_candidate_links: Where the candidate paths of a component have more links together, only flows without a
            path choose one, and only by the first rule.
        min_gain: A change must gain this fraction over keeping what is in force.
        least_of_bound: No job is to get less than this fraction of what is due to it, its share in the fluid bound or
            its fair share, whichever is greater.
        longest_iteration_s: No iteration is to take longer where the job's fair share would make it shorter.
        max_slowdown: The largest factor over its iteration time alone that a job should suffer; None: no limit.
        num_orders: How many orders the compression tries, as in Crux; None: as many as the size of the graph suggests.

    Raises:
        ValueError: A value is out of range; the message names the field.
    """

    model: ModelOptions = _MODEL
    initial_orders: tuple[InitialOrder, ...] = (InitialOrder.FLUID_BOUND, InitialOrder.CRUX)
    path_rules: tuple[PathRule, ...] = tuple(PathRule)
    may_share: bool = True
    evaluations: int = 800
    event_evaluations: int = 60
    full_search_jobs: int = 50
    min_evaluations: int = 8
    model_steps: float = 4e6
    max_modelled_jobs: int = 64
    bound_steps: int = 100
    max_candidate_links: int = 1 << 18
    min_gain: float = 0.01
    least_of_bound: float = 0.05
    longest_iteration_s: float = 40.0
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
        if not 0 <= self.least_of_bound <= 1:
            raise ValueError(f"least_of_bound must be from 0 to 1, not {self.least_of_bound}")
        if not self.longest_iteration_s > 0:
            raise ValueError(f"longest_iteration_s must be positive, not {self.longest_iteration_s}")
        if self.max_slowdown is not None and not self.max_slowdown >= 1:
            raise ValueError(f"max_slowdown must be at least 1, not {self.max_slowdown}")
