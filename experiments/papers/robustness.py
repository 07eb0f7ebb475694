"""Robustness: utilisation under wrong job profiles, late decisions, few levels and varying computation times.

The testbed's mixes and random ones run on the simulator, undisturbed and under every disturbance.
"""

import statistics
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Annotated, Any

from experiments.papers.crux_testbed import PUBLISHED
from experiments.papers.evaluation import Evaluation, Option, require_known
from experiments.papers.random_jobs import FabricName, random_mix
from experiments.papers.table_cells import DASH, share_bar
from experiments.report.findings import BarChart, Findings, FindingsTable
from experiments.report.numbers import count, signed, slowdown
from experiments.scenarios.backend import Backend, run_on
from workloads.loading import SHIPPED_SCENARIOS, load_scenario
from workloads.scenario import ProfileError, Scenario

POLICIES = ("ecmp", "crux", "sincronia", "trainyard")
RANDOM_MIXES = {f"random on {fabric}": fabric for fabric in FabricName}
MIXES = (*PUBLISHED, *RANDOM_MIXES)
"""A seed changes the ECMP hash of the testbed's mixes, and draws other random mixes."""

NONE = "none"
ERRORS = (0.05, 0.2, 0.5)
DISTURBANCES: Mapping[str, Mapping[str, Any]] = {
    NONE: {},
    **{
        f"{number} {error:.0%}": {"profile_error": ProfileError(**{number: error})}
        for number in ("work", "bytes", "overlap")
        for error in ERRORS
    },
    **{
        f"all three {error:.0%}": {"profile_error": ProfileError(work=error, bytes=error, overlap=error)}
        for error in ERRORS
    },
    **{f"jitter {deviation:.0%}": {"compute_jitter": deviation} for deviation in (0.02, 0.1)},
    **{f"delay {delay_s} s": {"reaction_delay_s": delay_s} for delay_s in (0, 0.1, 1, 10)},
    **{f"{levels} levels": {"num_levels": levels} for levels in (4, 2)},
}
"""Scenario keys by disturbance. Undisturbed, decisions take 0.01 s and there are eight levels."""
REACHES_ECMP = {NONE, *(name for name, keys in DISTURBANCES.items() if "compute_jitter" in keys)}
"""The disturbances that affect a policy without profiles, decisions and levels."""

ASSUMPTIONS = (
    "Mixes: those of Crux's testbed (crux-testbed), and random ones on its fabric and on that with half the "
    "aggregation switches: GPT on 16, 32 or 48 GPUs, BERT on 8 or 16, ResNet on 8 or 16, hosts at random, until three "
    "jobs in a row find no room.",
    "A seed sets the ECMP hash, the policies' choices, the disturbance and the random mix; seeds start at 1.",
    "work is a job's computation W; bytes are those of all its flows, and so its communication time t; overlap is the "
    "part of the computation during which it may communicate. Each is wrong by exactly the error, up or down by seed "
    "and job. The controller gets the wrong value when the job registers; the job runs with the true one.",
    "Jitter is the standard deviation of every computation time (compute_jitter). A delay is the time from an arrival "
    "or departure until the fabric follows; runs last 14 s, all of which count.",
    "The limit is the smaller of ideal and fluid bound; neither includes jitter.",
    "ecmp uses no profiles and no levels, so only jitter affects it.",
    "The simulator has fluid flows and levels, and decides at job events.",
)


@dataclass(frozen=True, slots=True)
class RobustnessCase:
    """One run: a mix under a policy and a disturbance."""

    mix: str
    seed: int
    policy: str
    disturbance: str

    def __str__(self) -> str:
        return f"{self.mix} under {self.policy}, {self.disturbance}, seed {self.seed}"

    @property
    def scenario(self) -> Scenario:
        """The scenario of the mix with the disturbance's keys set."""
        fabric = RANDOM_MIXES.get(self.mix)
        mix = load_scenario(SHIPPED_SCENARIOS / f"{self.mix}.yaml") if fabric is None else random_mix(self.seed, fabric)
        return mix.model_copy(update={"seed": self.seed, **DISTURBANCES[self.disturbance]})


@dataclass(frozen=True, slots=True)
class RunMeasured:
    """One run: utilisation over the limit, the speed of the slowest job (1 / slowdown), and how many jobs starve."""

    share: float
    worst_speed: float | None
    starved_jobs: int


@dataclass(frozen=True, slots=True)
class DisturbanceMeasured:
    """One policy under one disturbance: utilisation over the limit, by mixes and seeds.

    The losses are against the same runs undisturbed, None where none of these is measured yet. All are fractions of 1.
    ``worst_speed`` is that of the slowest job of all runs, and ``starved_jobs`` counts those of all runs.
    """

    disturbance: str
    policy: str
    num_runs: int
    mean: float
    worst: float
    worst_mix: str
    worst_seed: int
    by_mix: dict[str, float]
    mean_loss: float | None
    worst_loss: float | None
    worst_speed: float | None
    starved_jobs: int


def _table(
    title: str, cells: Sequence[DisturbanceMeasured], shown: Callable[[DisturbanceMeasured], str]
) -> FindingsTable:
    by_cell = {(of.disturbance, of.policy): shown(of) for of in cells}
    rows = tuple(
        (disturbance, *(by_cell.get((disturbance, policy), DASH) for policy in POLICIES))
        for disturbance in DISTURBANCES
        if any((disturbance, policy) in by_cell for policy in POLICIES)
    )
    return FindingsTable(title, ("Disturbance", *map(str, POLICIES)), rows)


def _share(of: DisturbanceMeasured) -> str:
    return f"{of.mean * 100:.1f}/{of.worst * 100:.1f}"


def _change(of: DisturbanceMeasured) -> str:
    if of.mean_loss is None or of.worst_loss is None:
        return DASH
    return f"{signed(-of.mean_loss * 100, 1)}/{signed(-of.worst_loss * 100, 1)}"


def _worst_job(of: DisturbanceMeasured) -> str:
    return f"{slowdown(of.worst_speed)}/{count(of.starved_jobs)}"


@dataclass(frozen=True)
class Robustness(Evaluation[RobustnessCase, RunMeasured, DisturbanceMeasured]):
    """The evaluation ``robustness``."""

    unit = "runs"

    mix: Annotated[tuple[str, ...], Option("Mix to run; may be repeated. Default: all.")] = ()
    seeds: Annotated[int, Option("Number of seeds, starting at 1.", minimum=1)] = 3

    def __post_init__(self) -> None:
        require_known("--mix", self.mix, MIXES)

    def cases(self) -> Sequence[RobustnessCase]:
        """Return the cases seed by seed, so that an evaluation that ends early has results for every disturbance."""
        return [
            RobustnessCase(mix, seed, policy, disturbance)
            for seed in range(1, self.seeds + 1)
            for disturbance in DISTURBANCES
            for mix in self.mix or MIXES
            for policy in POLICIES
            if policy != "ecmp" or disturbance in REACHES_ECMP
        ]

    @staticmethod
    def measure(case: RobustnessCase) -> RunMeasured:
        """Run a case. Raises RunError."""
        result = run_on(Backend.SIMULATOR, case.scenario, case.policy, on_progress=lambda *_: None)
        share = result.gpu_utilisation / min(result.ideal_gpu_utilisation, result.fluid_bound_gpu_utilisation)
        return RunMeasured(share, result.worst_speed, result.starved_jobs)

    def group(self, case: RobustnessCase) -> Hashable:
        """Report mixes and seeds together."""
        return case.disturbance, case.policy

    def combine(
        self, cases: Sequence[RobustnessCase], results: Mapping[RobustnessCase, RunMeasured]
    ) -> DisturbanceMeasured:
        """Combine mixes and seeds."""
        shares = {case: result.share for case, result in results.items()}
        worst = min(cases, key=lambda case: (shares[case], case.mix, case.seed))
        undisturbed = {case: replace(case, disturbance=NONE) for case in cases}
        losses = [shares[before] - shares[case] for case, before in undisturbed.items() if before in shares]
        by_mix = {mix: [shares[case] for case in cases if case.mix == mix] for mix in MIXES}
        speeds = [speed for case in cases if (speed := results[case].worst_speed) is not None]
        return DisturbanceMeasured(
            disturbance=worst.disturbance,
            policy=worst.policy,
            num_runs=len(cases),
            mean=statistics.mean(shares[case] for case in cases),
            worst=shares[worst],
            worst_mix=worst.mix,
            worst_seed=worst.seed,
            by_mix={mix: statistics.mean(of_mix) for mix, of_mix in by_mix.items() if of_mix},
            mean_loss=statistics.mean(losses) if losses else None,
            worst_loss=max(losses, default=None),
            worst_speed=min(speeds, default=None),
            starved_jobs=sum(results[case].starved_jobs for case in cases),
        )

    def json_object(self, measured: DisturbanceMeasured) -> dict[str, object]:
        """Return the JSON object of a policy under a disturbance."""
        return {"evaluation": "robustness", **asdict(measured), "assumptions": ASSUMPTIONS}

    def findings(self, measured: Sequence[DisturbanceMeasured]) -> Findings:
        """Return tables with a row for each disturbance and a column for each policy."""
        num_runs = sum(of.num_runs for of in measured)
        ours = [share_bar(of.disturbance, of.mean) for of in measured if of.policy == "trainyard"]
        return Findings(
            title=f"Robustness: {count(num_runs)} {'run' if num_runs == 1 else 'runs'}",
            tables=(
                _table("Share of the limit in percent, mean/worst", measured, _share),
                _table("Change against undisturbed runs in points, mean/worst", measured, _change),
                _table("Slowdown of the slowest job of all runs/starved jobs", measured, _worst_job),
            ),
            charts=(BarChart("trainyard: mean share of the limit", tuple(ours)),),
            assumptions=ASSUMPTIONS,
        )
