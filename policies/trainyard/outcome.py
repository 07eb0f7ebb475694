"""The decision for one job, and what it is worth by the model."""

from collections.abc import Sequence
from dataclasses import dataclass

from policies.job import Job
from policies.trainyard.path_choice import PathChoice


@dataclass(frozen=True, slots=True)
class JobOutcome:
    """The decision for one job, and what it is worth by the model.

    Attributes:
        job: The job.
        paths: The paths of its flows.
        levels: By flow group.
        places: By flow group, its place in the order of the component.
        intensity: GPU intensity.
        urgency: Its w / (p + slack).
        alone_s: The time of an iteration alone.
        bound_share: The share of its iterations alone that the fluid bound serves.
        served: The share of its iterations alone that it gets by the model.
        lacks: The fraction that it lacks of its least share.
        excess: How far its slowdown exceeds ``max_slowdown``.
        worth: Its computation per second alone.
        worth_before: Its computation per second by the model if what is in force had stayed.
        is_modelled: Whether its task graph was played; capacity alone was compared otherwise.
    """

    job: Job
    paths: PathChoice
    levels: Sequence[int]
    places: Sequence[int]
    intensity: float
    urgency: float
    alone_s: float
    bound_share: float
    served: float
    lacks: float
    excess: float
    worth: float
    worth_before: float
    is_modelled: bool

    @property
    def iteration_s(self) -> float | None:
        """The iteration time that the model expects; None where it was not run, or the job stands still."""
        return self.alone_s / self.served if self.is_modelled and self.served > 0 else None

    def has_same_flow_plans(self, other: "JobOutcome") -> bool:
        """Return whether the flows of the job get the same paths, levels and order as in another outcome."""
        is_same = self.job is other.job and self.paths is other.paths
        return is_same and self.levels == other.levels and self.places == other.places
