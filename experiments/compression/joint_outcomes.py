"""What is measured of two jobs on one link, as plain data."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class JointMix:
    """Two jobs on one link; the first can compress.

    Attributes:
        seed: Of the draws.
        number: Which of them.
        models: By job, its shapes.
        compute_s: By job, its computation per step.
        load: What both would send uncompressed if nobody waited, over what the link carries.
        offset_s: When the second job begins.
    """

    seed: int
    number: int
    models: tuple[str, str]
    compute_s: tuple[float, float]
    load: float
    offset_s: float


@dataclass(frozen=True, slots=True)
class JointCase:
    """A mix, the policy of the controller, and DDP's ``bucket_cap_mb``."""

    mix: JointMix
    policy: str
    bucket_mib: float = 25.0

    def __str__(self) -> str:
        return f"mix {self.mix.number} of seed {self.mix.seed} under {self.policy}"


@dataclass(frozen=True, slots=True)
class PlayedJob:
    """A job once it has settled: the mean time of its steps, and what they sent of the gradients."""

    step_s: float
    ratio: float


JobPair = tuple[PlayedJob, PlayedJob]


@dataclass(frozen=True, slots=True)
class JointPlay:
    """A mix as it was played.

    Attributes:
        case: Which.
        rate_mbps: Of the link.
        alone: Each job without the other.
        uncompressed_s: The mean time of the first job's steps alone, if it compresses nothing.
        apart: Both, each deciding alone.
        together: Both, with the controller.
        decisions: How often the controller has decided.
    """

    case: JointCase
    rate_mbps: float
    alone: JobPair
    uncompressed_s: float
    apart: JobPair
    together: JobPair
    decisions: int

    def over_alone(self, jobs: JobPair) -> float:
        """Return the sum over both jobs of the time of a step over that alone."""
        return sum(job.step_s / alone.step_s for job, alone in zip(jobs, self.alone, strict=True))

    @property
    def over_uncompressed(self) -> float:
        """As ``joint``, where alone neither job compresses."""
        alone_s = self.uncompressed_s, self.alone[1].step_s

        def total(jobs: JobPair) -> float:
            return sum(job.step_s / time_s for job, time_s in zip(jobs, alone_s, strict=True))

        return total(self.together) / total(self.apart)

    @property
    def best_over_apart(self) -> float:
        """That sum if neither job met the other, over that where each decides alone: hardly anything is less."""
        return len(self.alone) / self.over_alone(self.apart)

    @property
    def joint(self) -> float:
        """That sum with the controller, over that where each decides alone."""
        return self.over_alone(self.together) / self.over_alone(self.apart)
