"""EchelonFlow beside fair sharing and coflow schedulers: training jobs that share a cable, and small cases.

The paper (HotNets 2022) has no figures to compare with. The expected ratios, ``MOST_OF_GROUPS`` and
``MOST_OF_STAGES``, are ours.
"""

import statistics
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated

import numpy as np

from controller.registry.errors import RegistrationError
from experiments.papers import echelon_runs
from experiments.papers.echelon_mixes import COMPUTE_JITTER, LEAST_LOAD, Kind, drawn_mix
from experiments.papers.echelon_runs import BY_GROUP, BY_STAGE, CONTENDERS, ECHELONFLOW, RunMeasured
from experiments.papers.evaluation import Evaluation, InvalidInputError, Option, require_known
from experiments.papers.open_loop import OpenCase
from experiments.papers.open_loop_policies import CASES, random_cases, tardiness_gap
from experiments.papers.table_cells import DASH
from experiments.report.findings import Bar, BarChart, Findings, FindingsTable
from experiments.report.numbers import percent, seconds
from policies.enforcement import Enforcement

MOST_OF_GROUPS, MOST_OF_STAGES = 0.75, 1.05
"""The largest expected ratio of EchelonFlow's excess tardiness to that of coflow schedulers, by their coflows."""
LOADS = (0.4, 0.8)
OPTIMUM = "optimum"
"""Names the small cases among the kinds of mixes."""
OPTIMUM_SEED = 1

ASSUMPTIONS = (
    "The paper has no figures; the expected ratios are ours.",
    "Mixes are random, on a dumbbell (experiments/papers/echelon_mixes.py): two jobs of one kind, or one job of "
    "each of five kinds; models are those of workloads/models.py. The offered load is that of the cable, from the "
    "bytes of an iteration and the iteration's time alone; link rates are chosen to give it. Seeds start at 1.",
    f"Computation times vary by {COMPUTE_JITTER * 100:g} % (standard deviation). The window opens after two of the "
    "longest iterations alone, and is six of them long; all jobs are present throughout.",
    "The tardiness of a group is the mean over its instances that ended in the window, a total is the sum over groups, "
    "and excess is the part beyond that of the job alone. A group or job that does not end in the window counts with "
    "the whole window.",
    "A coflow is either a whole flow group or each of its stages (the flows with one ideal finish time), which the job "
    "then registers as groups of their own; tardiness is that of the flow groups in both.",
    "Ratios are of means over seeds. Where all flows of a group are due together (dp, tp), EchelonFlow is Varys by "
    "definition, and the ratio is 1.",
    "Sincronia serves the flows of a coflow one by one in the order of the task graph, in which they are also needed. "
    "For whole groups this is information that coflows do not have.",
    f"There are {CASES} small cases, seed {OPTIMUM_SEED}: up to three groups of up to four flows on one or two links, "
    "with fixed release times. The optimum, by mixed-integer programming, knows all releases in advance.",
)
_OF_ENFORCEMENT = {
    Enforcement.IDEAL: "Every policy has the rates of its own paper, recomputed as the paper does; no hardware has "
    "these.",
    Enforcement.LEVELS: "Policies have eight levels with fair sharing within each, and decide as jobs arrive and "
    "depart.",
}


@dataclass(frozen=True, slots=True)
class MixesMeasured:
    """The mixes of one kind at one offered load; ``runs`` has a run for each seed, by contender."""

    kind: Kind
    load: float
    enforcement: Enforcement
    seeds: tuple[int, ...]
    runs: Mapping[str, tuple[RunMeasured, ...]]

    def mean(self, contender: str, of: Callable[[RunMeasured], float]) -> float:
        """Return the mean over the seeds."""
        return statistics.mean(map(of, self.runs[contender]))

    @property
    def title(self) -> str:
        """Kind and load, for tables."""
        return f"{self.kind} at {self.load:g}"


@dataclass(frozen=True, slots=True)
class GapsMeasured:
    """Tardiness over the optimum, minus 1, by policy and small case."""

    gaps: Mapping[str, tuple[float, ...]]


Measured = MixesMeasured | GapsMeasured


def _iteration_time_s(run: RunMeasured) -> float:
    return run.iteration_time_s


def _excess_s(run: RunMeasured) -> float:
    return run.excess_tardiness_s


def ratios(cases: Sequence[MixesMeasured], of: Callable[[RunMeasured], float]) -> dict[str, float | None]:
    """Return EchelonFlow's mean over that of each coflow scheduler, summed over cases; None where that is 0."""
    found: dict[str, float | None] = {}
    ours = sum(case.mean(ECHELONFLOW.name, of) for case in cases)
    for other in (*BY_GROUP, *BY_STAGE):
        theirs = sum(case.mean(other.name, of) for case in cases)
        found[other.name] = ours / theirs if theirs > 0 else None
    return found


def _contender_object(name: str, runs: Sequence[RunMeasured]) -> dict[str, object]:
    return {
        "name": name,
        "iteration_time_s": statistics.mean(run.iteration_time_s for run in runs),
        "slowdown": statistics.mean(run.slowdown for run in runs),
        "tardiness_s": statistics.mean(run.tardiness_s for run in runs),
        "excess_tardiness_s": statistics.mean(map(_excess_s, runs)),
        "excess_tardiness_s_by_seed": tuple(map(_excess_s, runs)),
        "gpu_utilisation": statistics.mean(run.gpu_utilisation for run in runs),
        "starved": sum(run.starved for run in runs),
    }


def _spread(gaps: Sequence[float]) -> dict[str, float]:
    return {
        "mean_gap": statistics.mean(gaps),
        "p90_gap": float(np.percentile(gaps, 90)),
        "largest_gap": max(gaps),
    }


def _num_cases(measured: GapsMeasured) -> int:
    return len(next(iter(measured.gaps.values())))


def _assumptions(enforcement: Enforcement) -> tuple[str, ...]:
    return (*ASSUMPTIONS, _OF_ENFORCEMENT[enforcement])


def _means(mixes: Iterable[MixesMeasured]) -> FindingsTable:
    rows = tuple(
        (
            case.title,
            name,
            str(len(case.seeds)),
            seconds(case.mean(name, _iteration_time_s)),
            f"{case.mean(name, lambda run: run.slowdown):.3f}",
            seconds(case.mean(name, lambda run: run.tardiness_s)),
            seconds(case.mean(name, _excess_s)),
            percent(case.mean(name, lambda run: run.gpu_utilisation)),
        )
        for case in mixes
        for name in case.runs
    )
    columns = ("Mix", "Policy", "Seeds", "Iteration", "Slowdown", "Tardiness", "Excess", "GPUs")
    return FindingsTable("Means over jobs and seeds", columns, rows)


def _ratios(title: str, mixes: Sequence[MixesMeasured], of: Callable[[RunMeasured], float]) -> FindingsTable:
    """Return the table of ratios for each kind and load, and for all kinds together."""
    by_load: dict[float, list[MixesMeasured]] = {}
    for case in mixes:
        by_load.setdefault(case.load, []).append(case)
    sums = [(f"all at {load:g}", cases) for load, cases in by_load.items() if len(cases) > 1]
    rows = tuple(
        (name, *map(_times, ratios(cases, of).values()))
        for name, cases in [*((case.title, [case]) for case in mixes), *sums]
    )
    return FindingsTable(title, ("Mix", *(other.name for other in (*BY_GROUP, *BY_STAGE))), rows)


def _gaps(measured: GapsMeasured) -> FindingsTable:
    rows = tuple((name, *map(percent, _spread(values).values())) for name, values in measured.gaps.items())
    title = f"Tardiness over the optimum, minus 1: {_num_cases(measured)} small cases"
    return FindingsTable(title, ("Policy", "Mean", "p90", "Largest"), rows)


def _chart(case: MixesMeasured) -> BarChart:
    excess_s = {name: case.mean(name, _excess_s) for name in case.runs}
    most_s = max(*excess_s.values(), 1e-12)
    bars = (Bar(name, seconds(value_s), value_s / most_s) for name, value_s in excess_s.items())
    return BarChart(f"{case.title}: excess tardiness", tuple(bars))


def _times(ratio: float | None) -> str:
    return DASH if ratio is None else f"{ratio:.3f}"


@dataclass(frozen=True, slots=True)
class MixCase:
    """A mix of one kind, load and seed, to run under all contenders."""

    kind: Kind
    load: float
    seed: int
    enforcement: Enforcement

    def __str__(self) -> str:
        return f"{self.kind} at load {self.load:g}, seed {self.seed}"


@dataclass(frozen=True, slots=True)
class SmallCase:
    """A small case to compare with its optimum."""

    number: int
    case: OpenCase

    def __str__(self) -> str:
        return f"small case {self.number}"


Case = MixCase | SmallCase
Result = tuple[RunMeasured, ...] | dict[str, float]
"""A run for each of ``CONTENDERS``; or for a small case the gap of each policy."""


@dataclass(frozen=True)
class Echelon(Evaluation[Case, Result, Measured]):
    """The evaluation ``echelon``."""

    kind: Annotated[tuple[str, ...], Option("Kind of mix; may be repeated. Default: all.")] = ()
    load: Annotated[
        tuple[float, ...],
        Option("Offered load of the cable, as a fraction; may be repeated. Default: 0.4 and 0.8."),
    ] = ()
    seeds: Annotated[int, Option("Number of seeds, starting at 1.", minimum=1)] = 20
    enforcement: Annotated[
        Enforcement,
        Option("levels: priority levels, as switches have; ideal: the policy's own rates (simulator only)."),
    ] = Enforcement.IDEAL

    def __post_init__(self) -> None:
        require_known("--kind", self.kind, (*Kind, OPTIMUM))
        if wrong := [load for load in self.load if not LEAST_LOAD <= load < 1]:
            raise InvalidInputError(
                f"--load: expected at least {LEAST_LOAD:g} and less than 1, got {load:g}" for load in wrong
            )

    def cases(self) -> Sequence[Case]:
        """Return the cases kind by kind and load by load."""
        found: list[Case] = []
        for kind in self.kind or (*Kind, OPTIMUM):
            if kind == OPTIMUM:
                found += [SmallCase(number, case) for number, case in enumerate(random_cases(OPTIMUM_SEED), 1)]
                continue
            for load in self.load or LOADS:
                found += [MixCase(Kind(kind), load, seed, self.enforcement) for seed in range(1, self.seeds + 1)]
        return found

    @staticmethod
    def measure(case: Case) -> Result:
        """Run a mix under every contender, or solve a small case. Raises RuntimeError where that fails."""
        if isinstance(case, SmallCase):
            return tardiness_gap(case.case)
        scenario = drawn_mix(case.kind, case.load, case.seed)
        found = []
        for contender in CONTENDERS:
            try:
                found.append(echelon_runs.measure(scenario, contender, case.enforcement))
            except (RegistrationError, RuntimeError, ValueError) as error:
                raise RuntimeError(f"under {contender.name}: {error}") from error
        return tuple(found)

    def group(self, case: Case) -> Hashable:
        """Report the seeds of a kind and load together, and all small cases."""
        return OPTIMUM if isinstance(case, SmallCase) else (case.kind, case.load)

    def combine(self, cases: Sequence[Case], results: Mapping[Case, Result]) -> Measured:
        """Combine the seeds of a kind and load, or the small cases."""
        first = cases[0]
        found = [results[case] for case in cases]
        if isinstance(first, SmallCase):
            gaps = [of_case for of_case in found if isinstance(of_case, dict)]
            return GapsMeasured({policy: tuple(of[policy] for of in gaps) for policy in gaps[0]})
        by_contender = zip(*(runs for runs in found if isinstance(runs, tuple)), strict=True)
        named = {contender.name: runs for contender, runs in zip(CONTENDERS, by_contender, strict=True)}
        seeds = tuple(case.seed for case in cases if isinstance(case, MixCase))
        return MixesMeasured(first.kind, first.load, first.enforcement, seeds, named)

    def json_object(self, measured: Measured) -> dict[str, object]:
        """Return the JSON object of a case; gaps and ratios are fractions of 1."""
        match measured:
            case GapsMeasured(gaps):
                figures = [{"policy": name, **_spread(values)} for name, values in gaps.items()]
                return {
                    "evaluation": "echelon",
                    "case": OPTIMUM,
                    "num_cases": _num_cases(measured),
                    "policies": figures,
                }
            case MixesMeasured():
                return {
                    "evaluation": "echelon",
                    "case": measured.kind,
                    "load": measured.load,
                    "enforcement": measured.enforcement,
                    "seeds": measured.seeds,
                    "contenders": [_contender_object(name, runs) for name, runs in measured.runs.items()],
                    "excess_tardiness_over": ratios([measured], _excess_s),
                    "iteration_time_over": ratios([measured], _iteration_time_s),
                    "assumptions": _assumptions(measured.enforcement),
                }

    def findings(self, measured: Sequence[Measured]) -> Findings:
        """Return the findings of one or more cases."""
        mixes = [case for case in measured if isinstance(case, MixesMeasured)]
        gaps = [case for case in measured if isinstance(case, GapsMeasured)]
        expected = f"expected: at most {MOST_OF_GROUPS:g} for groups, {MOST_OF_STAGES:g} for stages"
        tables = [
            _means(mixes),
            _ratios(f"Excess tardiness of EchelonFlow over that of coflows; {expected}", mixes, _excess_s),
            _ratios("Iteration time of EchelonFlow over that of coflows", mixes, _iteration_time_s),
        ]
        return Findings(
            title=f"EchelonFlow, fair sharing and coflows: {self.enforcement} rates",
            tables=(*(tables if mixes else ()), *map(_gaps, gaps)),
            charts=tuple(map(_chart, mixes)),
            assumptions=_assumptions(self.enforcement),
        )
