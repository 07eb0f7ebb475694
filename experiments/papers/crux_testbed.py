"""Crux's testbed, Figures 19 to 22 of its paper (SIGCOMM 2024, section 6.2): GPU utilisation and iteration times.

Every mix runs with several hash seeds under ``ecmp``, ``crux`` and ``trainyard``. The paper's utilisation is read off
its figures; it prints the changes of completion time.
"""

import statistics
from collections import defaultdict
from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated

from experiments.papers.evaluation import Evaluation, Option, require_known
from experiments.papers.table_cells import DASH, percent_or_dash, share_bar
from experiments.report.findings import BarChart, Findings, FindingsTable
from experiments.report.numbers import count, percent, signed, slowdown
from experiments.scenarios.backend import Backend, RunError, run_on
from experiments.scenarios.results import RunResult
from workloads.loading import SHIPPED_SCENARIOS, load_scenario

POLICIES = ("ecmp", "crux", "trainyard")
"""The policies compared, the reference first."""


@dataclass(frozen=True, slots=True)
class Published:
    """The paper's utilisation without Crux, with it, and ideal; its change of completion time by model (fractions)."""

    without: float
    scheduled: float
    ideal: float
    changes: dict[str, float]

    @property
    def gap_closed(self) -> float:
        """The share of the gap between no scheduling and the ideal that Crux closes."""
        return (self.scheduled - self.without) / (self.ideal - self.without)


PUBLISHED = {
    "fig19-n2": Published(0.759, 0.842, 0.850, {"gpt": -0.11, "bert": 0.03}),
    "fig19-n3": Published(0.673, 0.788, 0.810, {"gpt": -0.17, "bert": 0.00}),
    "fig19-n4": Published(0.597, 0.736, 0.770, {"gpt": -0.25, "bert": 0.01}),
    "fig20": Published(0.655, 0.785, 0.820, {"gpt": -0.18, "bert": -0.15, "resnet": 0.02}),
    "fig21": Published(0.697, 0.793, 0.820, {"bert": -0.19, "resnet": 0.02}),
    "fig22": Published(0.540, 0.687, 0.720, {"bert": -0.28, "resnet": 0.02}),
}
"""The paper's figures, by shipped scenario."""

ASSUMPTIONS = (
    "Topology, GPUs of each job and hardware of hosts are the paper's.",
    "The paper prints neither the jobs' compute times nor their volumes. Ours come from one table for all mixes, sized "
    "so that utilisation without scheduling is near the paper's (workloads/models.py, docs/models.md).",
    "This does not determine ResNet's compute time: it was chosen with Crux's gain in Figure 21 in view "
    "(docs/models.md).",
    "The placement of jobs is ours too. GPT has one host under each ToR that it uses; other jobs have adjacent hosts.",
    "A seed sets the fabric's ECMP hash and the policies' random choices; seeds start at 1.",
    "The paper's utilisation is read off its figures, to about one point; it does not publish the spread over hashes.",
    "Utilisation is measured from the first arrival to the first departure, without the first iteration of each job.",
    "Iteration times are compared with the paper's completion times; a model's is the mean over its jobs.",
    "The worst job is the one with the largest slowdown, the iteration time over that of the ideal, with any seed.",
    "The limit is the smaller of ideal and fluid bound. The window cuts iterations, so a run may exceed it slightly.",
)
_OF_BACKEND = {
    "simulator": "The simulator has fluid flows: max-min fair within a level, strict priority between levels, no "
    "congestion control, no headers.",
    "emulator": "The emulator forwards every packet, at rates and sizes divided by the scale (docs/scenarios.md).",
}


@dataclass(frozen=True, slots=True)
class PolicyMeasured:
    """One mix under one policy: utilisation by seed, and means over the seeds.

    ``limit`` is the smaller of ideal and fluid bound. ``changes`` are the changes of mean iteration time against the
    first policy, by model, as fractions. ``worst_speed`` is the least of a job with any seed (1 / slowdown, 0 where it
    is starved), and ``starved_jobs`` counts those with all seeds.
    """

    policy: str
    utilisation_by_seed: tuple[float, ...]
    ideal: float
    limit: float
    gap_closed: float | None
    changes: dict[str, float]
    worst_speed: float | None
    starved_jobs: int

    @property
    def utilisation(self) -> float:
        """Mean utilisation over the seeds."""
        return statistics.mean(self.utilisation_by_seed)

    @property
    def deviation(self) -> float:
        """Standard deviation of utilisation over the seeds; 0 for one seed."""
        return statistics.stdev(self.utilisation_by_seed) if len(self.utilisation_by_seed) > 1 else 0.0

    @property
    def share_of_limit(self) -> float:
        """Utilisation over the limit."""
        return self.utilisation / self.limit


@dataclass(frozen=True, slots=True)
class MixMeasured:
    """One mix under every policy. ``first_runs`` are the runs of the first seed."""

    mix: str
    backend: str
    seeds: tuple[int, ...]
    policies: tuple[PolicyMeasured, ...]
    first_runs: tuple[RunResult, ...]

    @property
    def published(self) -> Published:
        """The paper's figures for this mix."""
        return PUBLISHED[self.mix]


def _of_policy(policy: str, results: Sequence[RunResult], reference: Sequence[RunResult]) -> PolicyMeasured:
    utilisations = tuple(result.gpu_utilisation for result in results)
    without = statistics.mean(result.gpu_utilisation for result in reference)
    ideal = statistics.mean(result.ideal_gpu_utilisation for result in results)
    before, after = _iteration_times_s(reference), _iteration_times_s(results)
    return PolicyMeasured(
        policy=policy,
        utilisation_by_seed=utilisations,
        ideal=ideal,
        limit=statistics.mean(min(one.ideal_gpu_utilisation, one.fluid_bound_gpu_utilisation) for one in results),
        gap_closed=(statistics.mean(utilisations) - without) / (ideal - without) if ideal > without else None,
        changes={model: time_s / before[model] - 1 for model, time_s in after.items() if model in before},
        worst_speed=min((result.worst_speed for result in results if result.worst_speed is not None), default=None),
        starved_jobs=sum(result.starved_jobs for result in results),
    )


def _iteration_times_s(results: Iterable[RunResult]) -> dict[str, float]:
    """Return mean iteration times by model. In these mixes a job's name begins with its model and a dash."""
    times: defaultdict[str, list[float]] = defaultdict(list)
    for result in results:
        for job in result.jobs:
            if job.iteration_time_s is not None:
                times[job.name.partition("-")[0]].append(job.iteration_time_s)
    return {model: statistics.mean(values) for model, values in times.items()}


def _utilisation(mixes: Iterable[MixMeasured]) -> FindingsTable:
    rows = tuple(
        (
            mix.mix,
            str(of.policy),
            percent(of.utilisation),
            f"{of.deviation * 100:.1f}",
            percent_or_dash(_published_utilisation(mix.published, of.policy)),
            percent(of.ideal),
            percent(mix.published.ideal),
            slowdown(of.worst_speed),
            count(of.starved_jobs),
        )
        for mix in mixes
        for of in mix.policies
    )
    columns = ("Mix", "Policy", "Ours", "Deviation", "Paper", "Ideal, ours", "Ideal, paper", "Worst job", "Starved")
    return FindingsTable("GPU utilisation", columns, rows)


def _limits(mixes: Iterable[MixMeasured]) -> FindingsTable:
    """Return the table of shares of the limit and of the gap closed."""
    rows = tuple(
        (
            mix.mix,
            str(of.policy),
            str(len(mix.seeds)),
            percent(of.limit),
            percent(of.share_of_limit),
            percent_or_dash(of.gap_closed),
            percent_or_dash(mix.published.gap_closed if of.policy == "crux" else None),
        )
        for mix in mixes
        for of in mix.policies
        if of.policy != POLICIES[0]
    )
    columns = ("Mix", "Policy", "Seeds", "Limit", "Of limit", "Gap closed", "Paper")
    return FindingsTable("Share of the limit, and of the gap between ecmp and ideal", columns, rows)


def _published_utilisation(published: Published, policy: str) -> float | None:
    return {"ecmp": published.without, "crux": published.scheduled}.get(policy)


def _changes(mixes: Iterable[MixMeasured]) -> FindingsTable:
    """Return the table of changes against the first policy, beside the paper's for Crux."""
    scheduled = POLICIES[1:]
    rows = tuple(
        (
            mix.mix,
            model,
            *(_signed_percent(of.changes.get(model)) for of in mix.policies[1:]),
            _signed_percent(mix.published.changes.get(model)),
        )
        for mix in mixes
        for model in mix.policies[0].changes
    )
    columns = ("Mix", "Model", *map(str, scheduled), "Paper (crux)")
    return FindingsTable(f"Change of iteration time against {POLICIES[0]}", columns, rows)


def _chart(mix: MixMeasured) -> BarChart:
    bars = []
    for of in mix.policies:
        bars.append(share_bar(of.policy, of.utilisation, deviation=of.deviation))
        if (published := _published_utilisation(mix.published, of.policy)) is not None:
            bars.append(share_bar(f"{of.policy}, paper", published, published=True))
    ideal = (share_bar("ideal", mix.policies[-1].ideal), share_bar("ideal, paper", mix.published.ideal, published=True))
    return BarChart(f"{mix.mix}: GPU utilisation", (*bars, *ideal))


def _signed_percent(change: float | None) -> str:
    return DASH if change is None else f"{signed(change * 100, 1)}\N{NO-BREAK SPACE}%"


@dataclass(frozen=True, slots=True)
class MixCase:
    """A mix with one seed, on one back end."""

    mix: str
    seed: int
    backend: Backend

    def __str__(self) -> str:
        return f"{self.mix}, seed {self.seed}"


@dataclass(frozen=True)
class CruxTestbed(Evaluation[MixCase, tuple[RunResult, ...], MixMeasured]):
    """The evaluation ``crux-testbed``. The result of a case is a run for each of ``POLICIES``."""

    unit = "mixes and seeds"

    mix: Annotated[tuple[str, ...], Option("Mix to run; may be repeated. Default: all.")] = ()
    seeds: Annotated[int, Option("Number of seeds, starting at 1.", minimum=1)] = 10
    on: Annotated[Backend, Option("Back end that runs the mixes; the emulator takes minutes for each.")] = (
        Backend.SIMULATOR
    )

    def __post_init__(self) -> None:
        require_known("--mix", self.mix, PUBLISHED)

    def cases(self) -> Sequence[MixCase]:
        """Return a case for every mix and seed."""
        return [MixCase(mix, seed, self.on) for mix in self.mix or PUBLISHED for seed in range(1, self.seeds + 1)]

    @staticmethod
    def measure(case: MixCase) -> tuple[RunResult, ...]:
        """Run the mix under each of ``POLICIES``. Raises RunError."""
        scenario = load_scenario(SHIPPED_SCENARIOS / f"{case.mix}.yaml").model_copy(update={"seed": case.seed})
        results = []
        for policy in POLICIES:
            try:
                results.append(run_on(case.backend, scenario, policy, on_progress=lambda *_: None))
            except RunError as error:
                raise RunError(f"under {policy}: {error}") from error
        return tuple(results)

    def group(self, case: MixCase) -> Hashable:
        """Report the seeds of a mix together."""
        return case.mix

    def combine(self, cases: Sequence[MixCase], results: Mapping[MixCase, tuple[RunResult, ...]]) -> MixMeasured:
        """Combine the seeds of a mix."""
        by_policy = list(zip(*(results[case] for case in cases), strict=True))
        return MixMeasured(
            cases[0].mix,
            by_policy[0][0].backend,
            tuple(case.seed for case in cases),
            tuple(_of_policy(policy, runs, by_policy[0]) for policy, runs in zip(POLICIES, by_policy, strict=True)),
            results[cases[0]],
        )

    def json_object(self, measured: MixMeasured) -> dict[str, object]:
        """Return the JSON object of a mix; shares and changes are fractions of 1."""
        return {
            "evaluation": "crux-testbed",
            "mix": measured.mix,
            "backend": measured.backend,
            "seeds": measured.seeds,
            "policies": [
                {
                    "policy": of.policy,
                    "gpu_utilisation": of.utilisation,
                    "gpu_utilisation_deviation": of.deviation,
                    "gpu_utilisation_by_seed": of.utilisation_by_seed,
                    "ideal_gpu_utilisation": of.ideal,
                    "limit_gpu_utilisation": of.limit,
                    "share_of_limit": of.share_of_limit,
                    "gap_closed": of.gap_closed,
                    "iteration_time_changes": of.changes,
                    "worst_speed": of.worst_speed,
                    "starved_jobs": of.starved_jobs,
                }
                for of in measured.policies
            ],
            "published": {
                "ecmp_gpu_utilisation": measured.published.without,
                "crux_gpu_utilisation": measured.published.scheduled,
                "ideal_gpu_utilisation": measured.published.ideal,
                "gap_closed": measured.published.gap_closed,
                "completion_time_changes": measured.published.changes,
            },
            "assumptions": _assumptions(measured.backend),
        }

    def findings(self, measured: Sequence[MixMeasured]) -> Findings:
        """Return utilisation and iteration times beside the paper's figures."""
        seeds = max((mix.seeds for mix in measured), key=len)
        span = f"seeds {seeds[0]} to {seeds[-1]}" if len(seeds) > 1 else f"seed {seeds[0]}"
        return Findings(
            title=f"Crux's testbed, Figures 19 to 22: {measured[0].backend}, {span}",
            tables=(_utilisation(measured), _limits(measured), _changes(measured)),
            charts=tuple(_chart(mix) for mix in measured),
            assumptions=_assumptions(measured[0].backend),
        )

    def pictures(self, measured: Sequence[MixMeasured]) -> Sequence[Sequence[RunResult]]:
        """Return the runs of each mix with its first seed."""
        return [mix.first_runs for mix in measured]


def _assumptions(backend: str) -> tuple[str, ...]:
    return (*ASSUMPTIONS, _OF_BACKEND[backend])
