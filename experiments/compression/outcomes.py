"""What is measured of NetSense: cases and their results as plain data, and the numbers that follow from them."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from itertools import pairwise
from pathlib import Path

from experiments.scenarios.backend import Backend

TOLERATED_POINTS = 0.5
"""How far below dense's final accuracy a way to send may end, in percentage points."""
BATCH = 8 * 32
"""Images of a step of the paper's job."""


class Scenario(StrEnum):
    """Conditions that change (the paper's scenarios 2 and 3)."""

    FALLING = "falling"
    CONTENDED = "contended"


@dataclass(frozen=True, slots=True)
class JobName:
    """A job by names.

    Attributes:
        model: Its shapes.
        compute_s: Its computation per step.
        device: From whose table codecs are charged.
        bucket_mib: DDP's ``bucket_cap_mb``.
    """

    model: str
    compute_s: float
    device: str
    bucket_mib: float = 25.0

    def __str__(self) -> str:
        return f"{self.model} with steps of {self.compute_s:g} s, codecs on {self.device}"


@dataclass(frozen=True, slots=True)
class RateCase:
    """A job at one rate, under all methods."""

    job: JobName
    rate_mbps: float
    steps: int
    backend: Backend = Backend.SIMULATOR

    def __str__(self) -> str:
        return f"{self.job} at {self.rate_mbps:g} Mbit/s"


@dataclass(frozen=True, slots=True)
class ScenarioCase:
    """A job under conditions that change, under all methods."""

    job: JobName
    scenario: Scenario
    backend: Backend = Backend.SIMULATOR

    def __str__(self) -> str:
        return f"{self.job}, {self.scenario}"


@dataclass(frozen=True, slots=True)
class TrainingCase:
    """One fold of a task, with what a job sends under a method.

    ``rate_mbps`` is None where that is always the same; ``data`` is where the task's data is, if it reads any.
    """

    task: str
    method: str
    rate_mbps: float | None
    fold: int
    steps: int
    job: JobName
    backend: Backend = Backend.SIMULATOR
    data: Path | None = None

    def __str__(self) -> str:
        return f"{self.task} under {self.method}, fold {self.fold}"


@dataclass(frozen=True, slots=True)
class ConfirmationCase:
    """A job on real hosts beside the same job in virtual time, at each of some rates.

    Attributes:
        model: Its shapes.
        compute_s: Its computation per step, before it is slowed.
        rates_mbps: Of the slow links, before they are slowed.
        steps: How many are measured under ``budget``.
        bucket_mib: DDP's ``bucket_cap_mb``.
    """

    model: str
    compute_s: float
    rates_mbps: tuple[float, ...]
    steps: int
    bucket_mib: float = 25.0

    def __str__(self) -> str:
        return f"{self.model} with steps of {self.compute_s:g} s on real hosts"


@dataclass(frozen=True, slots=True)
class ConfirmedMethod:
    """A method at one rate, on real hosts and in virtual time.

    Attributes:
        method: Its name.
        rate_mbps: Of the slow links.
        real_step_s: The mean of its settled steps, over the factor by which they were slowed.
        virtual_step_s: The same in virtual time.
        real_ratio: Share of the gradients that its last step sent.
        virtual_ratio: The same in virtual time.
        idle_share: Of the cores, while it ran.
    """

    method: str
    rate_mbps: float
    real_step_s: float
    virtual_step_s: float
    real_ratio: float
    virtual_ratio: float
    idle_share: float

    @property
    def difference(self) -> float:
        """How much more throughput real hosts had, as a share of that in virtual time."""
        return self.virtual_step_s / self.real_step_s - 1


@dataclass(frozen=True, slots=True)
class Confirmed:
    """A job on real hosts beside virtual time; ``factor`` is what rates were divided by, and computation multiplied."""

    case: ConfirmationCase
    factor: float
    methods: tuple[ConfirmedMethod, ...]


@dataclass(frozen=True, slots=True)
class MethodAtRate:
    """A method at one rate.

    Attributes:
        method: Its name.
        share: Throughput over that of the same job without communication, once the method has settled.
        samples_per_s: Of all workers.
        used: Share of the time free for communication that it used, once settled; above 1 where steps wait.
        ends_s: When each step ended.
        ratios: Share of the gradients that each step sent; of low rank, its values over the gradients.
    """

    method: str
    share: float
    samples_per_s: float
    used: float
    ends_s: tuple[float, ...]
    ratios: tuple[float, ...]


@dataclass(frozen=True, slots=True)
class AtRate:
    """All methods at one rate."""

    case: RateCase
    methods: tuple[MethodAtRate, ...]

    def of(self, method: str) -> MethodAtRate:
        """Return one of them. Raises StopIteration if it is missing."""
        return next(each for each in self.methods if each.method == method)


@dataclass(frozen=True, slots=True)
class Part:
    """One condition of a scenario.

    Attributes:
        rate_bps: Of the slow links.
        streams: Of others.
        adaptive: Throughput of each mode, as a share of the same job without communication, from the sixth step on.
        fixed: The same of each fixed configuration, if it were all the time like that.
        used: Share of the free time that ``budget`` used, in steps that it compresses; None: there are none.
    """

    rate_bps: float
    streams: int
    adaptive: Mapping[str, float]
    fixed: Mapping[str, float]
    used: float | None

    def over_best(self, mode: str, eligible: Sequence[str]) -> float | None:
        """Return a mode's throughput over that of the best eligible fixed configuration; None if there is none."""
        best = max((self.fixed[name] for name in eligible if name in self.fixed), default=None)
        return None if best is None else self.adaptive[mode] / best


@dataclass(frozen=True, slots=True)
class UnderScenario:
    """All conditions of a scenario in their order, and the ratios of ``budget`` by the begin of its steps."""

    case: ScenarioCase
    parts: tuple[Part, ...]
    ratios: tuple[tuple[float, float], ...]


@dataclass(frozen=True, slots=True)
class FoldCurve:
    """How many test examples of one fold were right after so many steps."""

    steps: tuple[int, ...]
    correct: tuple[int, ...]
    tested: int


@dataclass(frozen=True, slots=True)
class Trained:
    """A task under a method, all folds."""

    task: str
    method: str
    rate_mbps: float | None
    folds: tuple[FoldCurve, ...] = field(default=())

    @property
    def curve(self) -> tuple[tuple[int, float], ...]:
        """Pairs of a step and the share of all test examples that were right after it."""
        tested = sum(fold.tested for fold in self.folds)
        correct = [sum(counts) / tested for counts in zip(*(fold.correct for fold in self.folds), strict=True)]
        return tuple(zip(self.folds[0].steps, correct, strict=True))

    @property
    def final(self) -> float:
        """The share at the end."""
        return self.curve[-1][1]

    def differences(self, dense: "Trained") -> tuple[float, ...]:
        """Return this final accuracy less dense's, in percentage points, by fold."""
        return tuple(
            100 * (own.correct[-1] - theirs.correct[-1]) / own.tested
            for own, theirs in zip(self.folds, dense.folds, strict=True)
        )


def mean(values: Sequence[float]) -> float:
    """Return the arithmetic mean of one or more numbers."""
    return sum(values) / len(values)


def time_to(curve: Sequence[tuple[int, float]], ends_s: Sequence[float], wanted: float) -> float | None:
    """Return when an accuracy is first reached, linear between two tests; None: never.

    Args:
        curve: Pairs of a step, from 1 on, and the accuracy after it.
        ends_s: When each step ended.
        wanted: The accuracy.
    """
    step, reached = curve[0]
    if reached >= wanted:
        return ends_s[step - 1]
    for (before, low), (after, high) in pairwise(curve):
        if high >= wanted:
            from_s, to_s = ends_s[before - 1], ends_s[after - 1]
            return from_s + (wanted - low) / (high - low) * (to_s - from_s)
    return None
