"""EchelonFlow beside fair sharing and coflow schedulers: what runs of ``echelon_runs`` and small cases come to.

The paper (HotNets 2022) has no figures to stand beside: what is expected of it are the ratios of ``MOST_OF_GROUPS`` and
``MOST_OF_STAGES``, which are ours.
"""

import statistics
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from experiments.papers.echelon_mixes import COMPUTE_JITTER, Kind
from experiments.papers.echelon_runs import BY_GROUP, BY_STAGE, CONTENDERS, ECHELONFLOW, RunMeasured
from experiments.papers.open_loop_policies import CASES
from experiments.report.findings import Bar, BarChart, Findings, FindingsTable
from experiments.report.numbers import percent, seconds
from policies.enforcement import Enforcement

MOST_OF_GROUPS, MOST_OF_STAGES = 0.75, 1.05
"""What EchelonFlow's excess tardiness over that of coflow schedulers is to be at most, by what these take for a
coflow."""
OPTIMUM = "optimum"
"""The case of small groups against the optimum, by the name that it has among the kinds of mixes."""
OPTIMUM_SEED = 1

ASSUMPTIONS = (
    "The paper has no figures; the ratios expected are ours.",
    "Mixes are drawn by chance on a dumbbell, as experiments/papers/echelon_mixes.py says: two jobs of a kind, or "
    "one of each of five; models are those of workloads/models.py. Offered load is that of the cable, from what jobs "
    "send in an iteration and the iteration's time alone; links are as fast as makes it so. Seeds count from 1.",
    f"Computations vary by {COMPUTE_JITTER * 100:g} % (standard deviation). The window opens when the longest "
    "iteration alone has passed twice, and is six of them long; all jobs are there throughout.",
    "Tardiness of a group is the mean over its instances that ended in the window, a total the sum over groups, excess "
    "what is beyond the same job's alone. A group or job that comes to no end in the window counts with all of it.",
    "A coflow is either a whole flow group or each of its stages (the flows of one ideal finish), which the job then "
    "tells as groups of their own; their tardiness is that of the flow groups all the same.",
    "Ratios are of means over seeds. Where all flows of a group are due together (dp, tp) EchelonFlow is Varys, and "
    "the ratio 1, by its definition.",
    "Of a coflow that Sincronia serves flow by flow the flows stand in the order of the task graph, in which they are "
    "needed too: for whole groups that is an order which coflows do not tell.",
    f"Small cases are {CASES}, seed {OPTIMUM_SEED}: up to three groups of up to four flows on one or two links, "
    "released whatever happens; the optimum, by mixed-integer programming, knows all releases before.",
)
_OF_ENFORCEMENT = {
    Enforcement.IDEAL: "Every policy has the rates of its own paper, at its own cadence: no hardware gives it these.",
    Enforcement.LEVELS: "Policies have eight levels and fair sharing inside them, decided as jobs come and go.",
}


@dataclass(frozen=True, slots=True)
class MixesMeasured:
    """The mixes of one kind at one offered load: by contender, a run for each seed."""

    kind: Kind
    load: float
    enforcement: Enforcement
    seeds: tuple[int, ...]
    runs: Mapping[str, tuple[RunMeasured, ...]]

    def mean(self, contender: str, of: Callable[[RunMeasured], float]) -> float:
        """Of something measured, over the seeds."""
        return statistics.mean(map(of, self.runs[contender]))

    @property
    def title(self) -> str:
        """Kind and load, to be read."""
        return f"{self.kind} at {self.load:g}"


@dataclass(frozen=True, slots=True)
class GapsMeasured:
    """Tardiness over the least there can be, less 1, by policy and small case."""

    gaps: Mapping[str, tuple[float, ...]]


Measured = MixesMeasured | GapsMeasured


def mixes_measured(
    kind: Kind, load: float, enforcement: Enforcement, runs: Sequence[tuple[int, Sequence[RunMeasured]]]
) -> MixesMeasured:
    """Seeds, and what was measured under each of ``CONTENDERS``."""
    by_contender = zip(*(found for _, found in runs), strict=True)
    named = {contender.name: found for contender, found in zip(CONTENDERS, by_contender, strict=True)}
    return MixesMeasured(kind, load, enforcement, tuple(seed for seed, _ in runs), named)


def gaps_measured(gaps: Sequence[Mapping[str, float]]) -> GapsMeasured:
    """One or more small cases."""
    return GapsMeasured({policy: tuple(of[policy] for of in gaps) for policy in gaps[0]})


def _iteration_time_s(run: RunMeasured) -> float:
    return run.iteration_time_s


def _excess_s(run: RunMeasured) -> float:
    return run.excess_tardiness_s


def ratios(cases: Sequence[MixesMeasured], of: Callable[[RunMeasured], float]) -> dict[str, float | None]:
    """EchelonFlow's mean over that of every coflow scheduler, summed over cases; None where that is not above 0."""
    found: dict[str, float | None] = {}
    ours = sum(case.mean(ECHELONFLOW.name, of) for case in cases)
    for other in (*BY_GROUP, *BY_STAGE):
        theirs = sum(case.mean(other.name, of) for case in cases)
        found[other.name] = ours / theirs if theirs > 0 else None
    return found


def json_object(measured: Measured) -> dict[str, object]:
    """A case as JSON has it; gaps and ratios are parts of one."""
    match measured:
        case GapsMeasured(gaps):
            figures = [{"policy": name, **_spread(values)} for name, values in gaps.items()]
            return {"evaluation": "echelon", "case": OPTIMUM, "num_cases": _num_cases(measured), "policies": figures}
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


def findings(measured: Sequence[Measured], enforcement: Enforcement) -> Findings:
    """One or more cases."""
    mixes = [case for case in measured if isinstance(case, MixesMeasured)]
    gaps = [case for case in measured if isinstance(case, GapsMeasured)]
    expected = f"expected: groups {MOST_OF_GROUPS:g}, stages {MOST_OF_STAGES:g} at most"
    tables = [
        _means(mixes),
        _ratios(f"Excess tardiness of EchelonFlow over that of coflows; {expected}", mixes, _excess_s),
        _ratios("Iteration time of EchelonFlow over that of coflows", mixes, _iteration_time_s),
    ]
    return Findings(
        title=f"EchelonFlow, fair sharing and coflows: {enforcement} rates",
        tables=(*(tables if mixes else ()), *map(_gaps, gaps)),
        charts=tuple(map(_chart, mixes)),
        assumptions=_assumptions(enforcement),
    )


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
    """Of every kind and load, and of all kinds together."""
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
    title = f"Tardiness over the optimum, less 1: {_num_cases(measured)} small cases"
    return FindingsTable(title, ("Policy", "Mean", "p90", "Largest"), rows)


def _chart(case: MixesMeasured) -> BarChart:
    excess_s = {name: case.mean(name, _excess_s) for name in case.runs}
    most_s = max(*excess_s.values(), 1e-12)
    bars = (Bar(name, seconds(value_s), value_s / most_s) for name, value_s in excess_s.items())
    return BarChart(f"{case.title}: excess tardiness", tuple(bars))


def _times(ratio: float | None) -> str:
    return "\N{EN DASH}" if ratio is None else f"{ratio:.3f}"
