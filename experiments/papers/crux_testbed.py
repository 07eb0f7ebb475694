"""Crux's testbed, Figures 19 to 22 of its paper (SIGCOMM 2024, section 6.2): GPU utilisation and iteration times.

Every mix runs with several hash seeds under ``ecmp``, ``crux`` and ``trainyard``. The paper's utilisation is read off
its figures; its changes of completion time are printed there.
"""

import statistics
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from experiments.report.findings import Bar, BarChart, Findings, FindingsTable
from experiments.report.numbers import percent, signed
from experiments.scenarios.results import RunResult

POLICIES = ("ecmp", "crux", "trainyard")
"""What every mix runs under, the policy to compare with first."""


@dataclass(frozen=True, slots=True)
class Published:
    """Utilisation without Crux, with it, and ideal; change of completion time by model, in parts of one."""

    without: float
    scheduled: float
    ideal: float
    changes: dict[str, float]

    @property
    def gap_closed(self) -> float:
        """What part of the way from no scheduling to the ideal Crux goes."""
        return (self.scheduled - self.without) / (self.ideal - self.without)


PUBLISHED = {
    "fig19-n2": Published(0.759, 0.842, 0.850, {"gpt": -0.11, "bert": 0.03}),
    "fig19-n3": Published(0.673, 0.788, 0.810, {"gpt": -0.17, "bert": 0.00}),
    "fig19-n4": Published(0.597, 0.736, 0.770, {"gpt": -0.25, "bert": 0.01}),
    "fig20": Published(0.655, 0.785, 0.820, {"gpt": -0.18, "bert": -0.15, "resnet": 0.02}),
    "fig21": Published(0.697, 0.793, 0.820, {"bert": -0.19, "resnet": 0.02}),
    "fig22": Published(0.540, 0.687, 0.720, {"bert": -0.28, "resnet": 0.02}),
}
"""The paper's figures by shipped scenario."""

ASSUMPTIONS = (
    "Topology, GPUs of each job and hardware of hosts are the paper's.",
    "The paper prints neither the jobs' compute times nor their volumes: those are ours, one table for all mixes, "
    "sized so that utilisation without scheduling lies near the paper's (workloads/models.py, docs/models.md).",
    "ResNet's compute time is not determined by that: it was chosen with Crux's gain in Figure 21 in sight.",
    "Which hosts a job has is ours as well. GPT has one host under each ToR that it uses; others lie beside.",
    "A seed is that of the fabric's ECMP hash and of the policies; seeds count from 1.",
    "The paper's utilisation is read off its figures, to about a point; its spread over hashes is not published.",
    "Utilisation counts from the first arrival to the first departure, without the first iteration of any job.",
    "Iterations stand beside the paper's completion times; a model's is the mean over its jobs.",
    "The limit is the smaller of ideal and fluid bound. As the window cuts iterations, a run may end a little above.",
)
_OF_BACKEND = {
    "simulator": "Simulated are fluid flows: max-min inside a level, strict priority between levels, no congestion "
    "control, no headers.",
    "emulator": "Emulated is every packet, at rates and sizes divided as docs/scenarios.md says of scale.",
}


@dataclass(frozen=True, slots=True)
class PolicyMeasured:
    """One mix under one policy: utilisation by seed, and means over the seeds.

    ``limit`` is the smaller of ideal and fluid bound, ``changes`` those of mean iteration time by model against the
    first policy, in parts of one.
    """

    policy: str
    utilisation_by_seed: tuple[float, ...]
    ideal: float
    limit: float
    gap_closed: float | None
    changes: dict[str, float]

    @property
    def utilisation(self) -> float:
        """Mean over the seeds."""
        return statistics.mean(self.utilisation_by_seed)

    @property
    def deviation(self) -> float:
        """Standard deviation over the seeds, 0 for one."""
        return statistics.stdev(self.utilisation_by_seed) if len(self.utilisation_by_seed) > 1 else 0.0

    @property
    def share_of_limit(self) -> float:
        """What part of the limit is reached."""
        return self.utilisation / self.limit


@dataclass(frozen=True, slots=True)
class MixMeasured:
    """One mix under every policy."""

    mix: str
    backend: str
    seeds: tuple[int, ...]
    policies: tuple[PolicyMeasured, ...]

    @property
    def published(self) -> Published:
        """The paper's figures of it."""
        return PUBLISHED[self.mix]


def measured(mix: str, runs: Sequence[Sequence[RunResult]]) -> MixMeasured:
    """What the runs of a mix show, one or more seeds, each under ``POLICIES``."""
    by_policy = list(zip(*runs, strict=True))
    reference = by_policy[0]
    seeds = tuple(result.seed for result in reference)
    policies = (_of_policy(policy, results, reference) for policy, results in zip(POLICIES, by_policy, strict=True))
    return MixMeasured(mix, reference[0].backend, seeds, tuple(policies))


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
    )


def _iteration_times_s(results: Iterable[RunResult]) -> dict[str, float]:
    """Mean iteration time by model: in these mixes the name of a job up to its dash."""
    times: defaultdict[str, list[float]] = defaultdict(list)
    for result in results:
        for job in result.jobs:
            if job.iteration_time_s is not None:
                times[job.name.partition("-")[0]].append(job.iteration_time_s)
    return {model: statistics.mean(values) for model, values in times.items()}


def json_object(mix: MixMeasured) -> dict[str, object]:
    """A mix as JSON has it; shares and changes are parts of one."""
    return {
        "evaluation": "crux-testbed",
        "mix": mix.mix,
        "backend": mix.backend,
        "seeds": mix.seeds,
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
            }
            for of in mix.policies
        ],
        "published": {
            "ecmp_gpu_utilisation": mix.published.without,
            "crux_gpu_utilisation": mix.published.scheduled,
            "ideal_gpu_utilisation": mix.published.ideal,
            "gap_closed": mix.published.gap_closed,
            "completion_time_changes": mix.published.changes,
        },
        "assumptions": _assumptions(mix.backend),
    }


def findings(mixes: Sequence[MixMeasured]) -> Findings:
    """One or more mixes, beside the paper."""
    seeds = max((mix.seeds for mix in mixes), key=len)
    span = f"seeds {seeds[0]} to {seeds[-1]}" if len(seeds) > 1 else f"seed {seeds[0]}"
    return Findings(
        title=f"Crux's testbed, Figures 19 to 22: {mixes[0].backend}, {span}",
        tables=(_utilisation(mixes), _limits(mixes), _changes(mixes)),
        charts=tuple(_chart(mix) for mix in mixes),
        assumptions=_assumptions(mixes[0].backend),
    )


def _assumptions(backend: str) -> tuple[str, ...]:
    return (*ASSUMPTIONS, _OF_BACKEND[backend])


def _utilisation(mixes: Iterable[MixMeasured]) -> FindingsTable:
    rows = tuple(
        (
            mix.mix,
            str(of.policy),
            percent(of.utilisation),
            f"{of.deviation * 100:.1f}",
            _or_dash(_published_utilisation(mix.published, of.policy)),
            percent(of.ideal),
            percent(mix.published.ideal),
        )
        for mix in mixes
        for of in mix.policies
    )
    columns = ("Mix", "Policy", "Ours", "Deviation", "Paper", "Ideal, ours", "Ideal, paper")
    return FindingsTable("GPU utilisation", columns, rows)


def _limits(mixes: Iterable[MixMeasured]) -> FindingsTable:
    """What is reached of what could be."""
    rows = tuple(
        (
            mix.mix,
            str(of.policy),
            str(len(mix.seeds)),
            percent(of.limit),
            percent(of.share_of_limit),
            _or_dash(of.gap_closed),
            _or_dash(mix.published.gap_closed if of.policy == "crux" else None),
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
    """Against the first policy, and what the paper has for Crux."""
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
        bars.append(_bar(str(of.policy), of.utilisation))
        if (published := _published_utilisation(mix.published, of.policy)) is not None:
            bars.append(_bar(f"{of.policy}, paper", published, published=True))
    ideal = (_bar("ideal", mix.policies[-1].ideal), _bar("ideal, paper", mix.published.ideal, published=True))
    return BarChart(f"{mix.mix}: GPU utilisation", (*bars, *ideal))


def _bar(label: str, share: float, *, published: bool = False) -> Bar:
    return Bar(label, percent(share), share, published)


def _or_dash(share: float | None) -> str:
    return "\N{EN DASH}" if share is None else percent(share)


def _signed_percent(change: float | None) -> str:
    return "\N{EN DASH}" if change is None else f"{signed(change * 100, 1)}\N{NO-BREAK SPACE}%"
