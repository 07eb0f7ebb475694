"""What is left of utilisation where the controller is told wrong numbers, decides late or has few levels, and where
computations vary.

The testbed's mixes and random ones run on the simulator, each as it is and under every disturbance.
"""

import statistics
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from experiments.papers.crux_testbed import PUBLISHED
from experiments.papers.random_jobs import FabricName, random_mix
from experiments.report.findings import Bar, BarChart, Findings, FindingsTable
from experiments.report.numbers import count, percent, signed
from experiments.scenarios.backend import Backend
from experiments.scenarios.runner import run_on
from workloads.loading import SHIPPED_SCENARIOS, load_scenario
from workloads.scenario import ProfileError, Scenario

POLICIES = ("ecmp", "crux", "sincronia", "trainyard")
RANDOM_MIXES = {f"random on {fabric}": fabric for fabric in FabricName}
MIXES = (*PUBLISHED, *RANDOM_MIXES)
"""Those of the testbed run with one hash after the other; the random ones are others, too, with each seed."""

_DASH = "\N{EN DASH}"
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
"""Keys of the scenario by what they amount to; without any, decisions take 0.01 s and there are eight levels."""
REACHES_ECMP = {NONE, *(name for name, keys in DISTURBANCES.items() if "compute_jitter" in keys)}
"""What changes anything for a policy that asks nobody and has no levels."""

ASSUMPTIONS = (
    "Mixes: those of Crux's testbed (crux-testbed), and random ones on its fabric and on that with half the "
    "aggregation switches: GPT on 16, 32 or 48 GPUs, BERT on 8 or 16, ResNet on 8 or 16, hosts at random, until three "
    "in a row have found no room.",
    "A seed is that of the hash, the policies, the disturbance and the random mix; seeds count from 1.",
    "work is W; bytes are those of all flows, and with them t; overlap is the part of the computation during which a "
    "job may communicate. Each is off by just the error, upwards or downwards by seed and job: so the controller is "
    "told when the job registers, and what runs is the truth.",
    "Jitter is the standard deviation of every computation (compute_jitter). A delay is that from an arrival or "
    "departure until the fabric follows; runs last 14 s, of which it counts in full.",
    "Limit: the smaller of ideal and fluid bound, neither of which knows jitter.",
    "ecmp asks nobody and has no levels: of all this only jitter reaches it.",
    "Simulated are fluid flows, decided at job events, with levels.",
)


@dataclass(frozen=True, slots=True)
class Run:
    """One run."""

    mix: str
    seed: int
    policy: str
    disturbance: str

    def __str__(self) -> str:
        return f"{self.mix} under {self.policy}, {self.disturbance}, seed {self.seed}"

    @property
    def scenario(self) -> Scenario:
        """The mix, disturbed."""
        fabric = RANDOM_MIXES.get(self.mix)
        mix = load_scenario(SHIPPED_SCENARIOS / f"{self.mix}.yaml") if fabric is None else random_mix(self.seed, fabric)
        return mix.model_copy(update={"seed": self.seed, **DISTURBANCES[self.disturbance]})


def runs(mixes: Iterable[str], seeds: int) -> list[Run]:
    """All runs, the seeds slowest, so that an interrupted evaluation has some of everything."""
    return [
        Run(mix, seed, policy, disturbance)
        for seed in range(1, seeds + 1)
        for disturbance in DISTURBANCES
        for mix in mixes
        for policy in POLICIES
        if policy != "ecmp" or disturbance in REACHES_ECMP
    ]


def share_of_limit(run: Run) -> float:
    """Utilisation as a part of the limit. Raises RunError."""
    result = run_on(Backend.SIMULATOR, run.scenario, run.policy, on_progress=lambda *_: None)
    return result.gpu_utilisation / min(result.ideal_gpu_utilisation, result.fluid_bound_gpu_utilisation)


@dataclass(frozen=True, slots=True)
class DisturbanceMeasured:
    """One policy under one disturbance: shares of the limit over mixes and seeds, and how much less they are than those
    of the same runs undisturbed (None where there is none of those yet), in parts of one."""

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


def measured(shares: Mapping[Run, float]) -> list[DisturbanceMeasured]:
    """What is finished, disturbance by disturbance."""
    cells: dict[tuple[str, str], list[Run]] = {}
    for run in shares:
        cells.setdefault((run.disturbance, run.policy), []).append(run)
    return [_measured(cells[cell], shares) for cell in sorted(cells, key=_place)]


def _place(cell: tuple[str, str]) -> tuple[int, int]:
    disturbance, policy = cell
    return list(DISTURBANCES).index(disturbance), POLICIES.index(policy)


def _measured(of: Sequence[Run], shares: Mapping[Run, float]) -> DisturbanceMeasured:
    worst = min(of, key=lambda run: (shares[run], run.mix, run.seed))
    undisturbed = {run: Run(run.mix, run.seed, run.policy, NONE) for run in of}
    losses = [shares[before] - shares[run] for run, before in undisturbed.items() if before in shares]
    mixes = [mix for mix in MIXES if any(run.mix == mix for run in of)]
    return DisturbanceMeasured(
        disturbance=worst.disturbance,
        policy=worst.policy,
        num_runs=len(of),
        mean=statistics.mean(shares[run] for run in of),
        worst=shares[worst],
        worst_mix=worst.mix,
        worst_seed=worst.seed,
        by_mix={mix: statistics.mean(shares[run] for run in of if run.mix == mix) for mix in mixes},
        mean_loss=statistics.mean(losses) if losses else None,
        worst_loss=max(losses, default=None),
    )


def json_object(of: DisturbanceMeasured) -> dict[str, object]:
    """A policy under a disturbance as JSON has it."""
    return {"evaluation": "robustness", **asdict(of), "assumptions": ASSUMPTIONS}


def findings(cells: Sequence[DisturbanceMeasured]) -> Findings:
    """What is finished, in tables of disturbances by policies."""
    num_runs = sum(of.num_runs for of in cells)
    ours = [Bar(of.disturbance, percent(of.mean), of.mean) for of in cells if of.policy == "trainyard"]
    return Findings(
        title=f"Robustness: {count(num_runs)} {'run' if num_runs == 1 else 'runs'}",
        tables=(
            _table("Share of the limit in percent, mean/worst", cells, _share),
            _table("Change against none in points, mean/worst", cells, _change),
        ),
        charts=(BarChart("trainyard: mean share of the limit", tuple(ours)),),
        assumptions=ASSUMPTIONS,
    )


def _table(
    title: str, cells: Sequence[DisturbanceMeasured], shown: Callable[[DisturbanceMeasured], str]
) -> FindingsTable:
    by_cell = {(of.disturbance, of.policy): shown(of) for of in cells}
    rows = tuple(
        (disturbance, *(by_cell.get((disturbance, policy), _DASH) for policy in POLICIES))
        for disturbance in DISTURBANCES
        if any((disturbance, policy) in by_cell for policy in POLICIES)
    )
    return FindingsTable(title, ("Disturbance", *map(str, POLICIES)), rows)


def _share(of: DisturbanceMeasured) -> str:
    return f"{of.mean * 100:.1f}/{of.worst * 100:.1f}"


def _change(of: DisturbanceMeasured) -> str:
    if of.mean_loss is None or of.worst_loss is None:
        return _DASH
    return f"{signed(-of.mean_loss * 100, 1)}/{signed(-of.worst_loss * 100, 1)}"
