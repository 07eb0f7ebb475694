"""Crux's microbenchmark (SIGCOMM 2024, section 4.4, figure 16): the mechanisms of several policies against the optimum.

The paper prints means and shows distributions, which are read off its figure. It does not define its relative error.
So both U / U_opt and the distance from the best to the worst, (U_opt - U) / (U_opt - U_worst), are shown. The paper's
figures look more like the second: in them Varys reaches 100 %.
"""

import statistics
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated

import numpy as np

from experiments.papers.evaluation import Evaluation, InvalidInputError, Option
from experiments.papers.microbench.cases import LOAD_BANDS, Assumption, bands_to
from experiments.papers.microbench.mechanisms import (
    METHODS,
    CaseMeasured,
    CaseParameters,
    Mechanism,
    Reached,
    draw_and_measure,
)
from experiments.papers.table_cells import DASH, percent_or_dash
from experiments.report.findings import Distribution, DistributionChart, Findings, FindingsTable
from experiments.report.numbers import count, percent

MAIN_LOAD = 1.2
"""Tables over all loads have the cases with at most this load."""


@dataclass(frozen=True, slots=True)
class Published:
    """The paper's relative error of one mechanism, as fractions of 1. It prints ``mean`` for Crux alone."""

    mean: float
    median: float
    p90: float
    largest: float

    @property
    def quantiles(self) -> tuple[tuple[float, float], ...]:
        """Errors, each with the share of cases that have at most this error."""
        return (self.median, 0.5), (self.p90, 0.9), (self.largest, 1.0)


PUBLISHED = {
    (Mechanism.PATHS, "crux"): Published(0.0231, 0.002, 0.093, 0.23),
    (Mechanism.PATHS, "taccl-star"): Published(0.043, 0.017, 0.121, 0.41),
    (Mechanism.PRIORITIES, "crux"): Published(0.0276, 0.005, 0.092, 0.456),
    (Mechanism.PRIORITIES, "taccl-star"): Published(0.169, 0.129, 0.440, 0.85),
    (Mechanism.PRIORITIES, "sincronia"): Published(0.239, 0.213, 0.519, 0.91),
    (Mechanism.PRIORITIES, "varys"): Published(0.578, 0.600, 0.857, 1.0),
    (Mechanism.COMPRESSION, "crux"): Published(0.0288, 0.005, 0.097, 0.46),
    (Mechanism.COMPRESSION, "sincronia"): Published(0.218, 0.191, 0.446, 0.90),
}
"""The paper's errors, read off its figure 16."""

ASSUMPTIONS = (
    "From the paper: at most 20 hosts of 8 GPUs, a two-layer Clos of 2 to 4 ToRs and 2 aggregation switches, 5 "
    "different jobs, 3 priority levels; one mechanism is a policy's, the other two are optimal.",
    "Job parameters, placement and link rates are ours (experiments/papers/microbench/cases.py).",
    "A job has 2 to 8 whole hosts under two ToRs drawn at random. Each sends to the next, so that one flow crosses "
    "between the two ToRs, and paths are chosen per job and pair of ToRs. All links have 100 Gbit/s, hosts one NIC.",
    "Load is the share of time for which the hottest link between switches is busy if all jobs iterate as if alone, on "
    "the paths for which that is least. Cases take turns among five bands of load.",
    "Utilisation is measured over 100 iterations of the longest job after 10 of warm-up; jobs start at random phases. "
    "Flows are fluid, max-min fair within a level, with strict priority between levels.",
    "The optimum is the best of all paths and all levels, by enumeration. The best order for compression is one with "
    "an optimal compression and, among these, the best result with a level for each job.",
    "An order is measured with its best compression, paths with their best levels. The worst is that of the same "
    "mechanism with the other two optimal: of all orders, of all choices of paths, of all compressions of the best "
    "order.",
    "trainyard decides by flow groups, of which each job here has one; its compression may deviate from the order "
    "where its model predicts a gain.",
    "The paper's errors are read off its figure 16; it does not define what they are relative to.",
)
_COMPUTING = "Jobs compute 0.25 to 1.5 s, log-uniformly."
_SENDING = "Alone they send for 0.2 to 2 times their computation time, scaled by one factor to the load."
_OF_JOBS = {
    Assumption.OURS: f"{_COMPUTING} Three in ten jobs send after all computation, the others start at a uniform "
    f"fraction of it. {_SENDING}",
    Assumption.IN_TURN: f"{_COMPUTING} Other than by default, all send when all is computed. {_SENDING}",
    Assumption.OVERLAPPED: f"{_COMPUTING} Other than by default, all jobs start to send at a uniform fraction of that. "
    f"{_SENDING}",
    Assumption.LARGE_SEND_LONGER: "Other than by default, jobs compute 0.5 to 0.7 s. Three in ten jobs send after all "
    "computation, the others start at a uniform fraction of it. Other than by default, they send, alone, for 0.8 to "
    "1.25 times their computation time, times the square root of the number of their hosts, scaled by one factor to "
    "the load.",
}


def _assumptions(assumption: Assumption) -> tuple[str, ...]:
    return (*ASSUMPTIONS[:2], _OF_JOBS[assumption], *ASSUMPTIONS[2:])


_ERROR = "(best - reached) / (best - worst)"
_COLOURS = METHODS[Mechanism.PRIORITIES]
_Value = Callable[[CaseMeasured, Reached], float]


def _main(cases: Sequence[CaseMeasured]) -> list[CaseMeasured]:
    return [case for case in cases if case.load <= MAIN_LOAD]


def _methods() -> Iterator[tuple[Mechanism, str, Published | None]]:
    for mechanism, policies in METHODS.items():
        for policy in policies:
            yield mechanism, policy, PUBLISHED.get((mechanism, policy))


def _values(cases: Sequence[CaseMeasured], mechanism: Mechanism, policy: str, value: _Value) -> list[float]:
    return [
        value(case, reached)
        for case in cases
        for reached in case.reached
        if (reached.mechanism, reached.policy) == (mechanism, policy)
    ]


def _shares(cases: Sequence[CaseMeasured]) -> FindingsTable:
    rows = []
    for mechanism, policy, published in _methods():
        shares = _values(cases, mechanism, policy, CaseMeasured.of_best)
        optimal = sum(share >= 1 - 1e-9 for share in shares) / len(shares)
        paper = percent_or_dash(1 - published.mean if published else None, decimals=2)
        low = float(np.quantile(shares, 0.1))
        mean = percent(statistics.mean(shares), 2)
        rows.append((f"{mechanism}, {policy}", mean, paper, percent(low), percent(min(shares)), percent(optimal)))
    columns = ("Mechanism", "Mean", "Paper", "p10", "Worst", "Optimal cases")
    return FindingsTable(f"U / U_opt, loads up to {MAIN_LOAD:g}: {count(len(cases))} cases", columns, tuple(rows))


def _errors(cases: Sequence[CaseMeasured]) -> FindingsTable:
    rows = []
    for mechanism, policy, published in _methods():
        errors = _values(cases, mechanism, policy, CaseMeasured.error)
        median, p90 = np.quantile(errors, (0.5, 0.9)).tolist()
        ours = Published(statistics.mean(errors), median, p90, max(errors))
        cells = (percent(ours.mean), percent_or_dash(published.mean if published else None), _quantiles(ours))
        rows.append((f"{mechanism}, {policy}", *cells, _quantiles(published)))
    columns = ("Mechanism", "Mean", "Paper", "p50, p90, max in %", "Paper")
    title = f"{_ERROR}, loads up to {MAIN_LOAD:g}: {count(len(cases))} cases"
    return FindingsTable(title, columns, tuple(rows))


def _quantiles(errors: Published | None) -> str:
    if errors is None:
        return DASH
    return ", ".join(f"{error * 100:.1f}" for error, _ in errors.quantiles)


def _by_load(title: str, cases: Sequence[CaseMeasured], value: _Value) -> FindingsTable:
    by_band = {band: [case for case in cases if _lies(case, band)] for band in LOAD_BANDS}
    rows = tuple(
        (
            f"{mechanism}, {policy}",
            *(percent(statistics.mean(_values(of, mechanism, policy, value))) for of in by_band.values() if of),
        )
        for mechanism, policy, _ in _methods()
    )
    columns = (f"{low:g} to {high:g}" for (low, high), of in by_band.items() if of)
    return FindingsTable(title, ("Mechanism", *columns), rows)


def _lies(case: CaseMeasured, band: tuple[float, float]) -> bool:
    return band[0] <= case.load < band[1]


def _missing(case: CaseMeasured, reached: Reached) -> float:
    return 1 - case.of_best(reached)


def _chart(cases: Sequence[CaseMeasured], mechanism: Mechanism, words: str, value: _Value) -> DistributionChart:
    distributions = tuple(
        Distribution(
            policy,
            _COLOURS.index(policy),
            tuple(_values(cases, mechanism, policy, value)),
            published.quantiles if published else (),
        )
        for of, policy, published in _methods()
        if of is mechanism
    )
    return DistributionChart(f"{mechanism.capitalize()}: {words}, the paper's error as circles", words, distributions)


@dataclass(frozen=True)
class CruxMicrobenchmark(Evaluation[CaseParameters, CaseMeasured, CaseMeasured]):
    """The evaluation ``crux-microbench``."""

    seeds: Annotated[int, Option("Number of cases, with seeds starting at 1.", minimum=1)] = 1500
    load_to: Annotated[float, Option("Largest load of the hottest link.")] = 2.5
    assume: Annotated[Assumption, Option("Distribution of job parameters, which the paper does not give.")] = (
        Assumption.OURS
    )

    def __post_init__(self) -> None:
        try:
            bands_to(self.load_to)
        except ValueError as error:
            raise InvalidInputError((f"--load-to: {error}",)) from error

    def cases(self) -> Sequence[CaseParameters]:
        """Return a case for every seed."""
        return [CaseParameters(seed, self.load_to, self.assume) for seed in range(1, self.seeds + 1)]

    @staticmethod
    def measure(case: CaseParameters) -> CaseMeasured:
        """Draw a case and measure it."""
        return draw_and_measure(case)

    def combine(self, cases: Sequence[CaseParameters], results: Mapping[CaseParameters, CaseMeasured]) -> CaseMeasured:
        """Return the result of a case."""
        return results[cases[0]]

    def json_object(self, measured: CaseMeasured) -> dict[str, object]:
        """Return the JSON object of a case; shares are fractions of 1."""
        return {
            "evaluation": "crux-microbench",
            "seed": measured.seed,
            "assume": self.assume,
            "load": measured.load,
            "best_gpu_utilisation": measured.best,
            "worst_gpu_utilisation": measured.worst,
            "methods": [
                {
                    "mechanism": reached.mechanism,
                    "policy": reached.policy,
                    "gpu_utilisation": reached.utilisation,
                    "of_best": measured.of_best(reached),
                    "error": measured.error(reached),
                }
                for reached in measured.reached
            ],
        }

    def summary_object(self, measured: Sequence[CaseMeasured]) -> dict[str, object]:
        """Return the JSON object of all cases up to the main load, with the assumptions."""
        main = _main(measured)
        return {
            "evaluation": "crux-microbench",
            "num_cases": len(measured),
            "num_main_cases": len(main),
            "assume": self.assume,
            "main_load_to": MAIN_LOAD,
            "methods": [
                {
                    "mechanism": mechanism,
                    "policy": policy,
                    "mean_of_best": statistics.mean(_values(main, mechanism, policy, CaseMeasured.of_best)),
                    "mean_error": statistics.mean(_values(main, mechanism, policy, CaseMeasured.error)),
                    "published_mean_error": published.mean if published else None,
                }
                for mechanism, policy, published in _methods()
                if main
            ],
            "assumptions": _assumptions(self.assume),
        }

    def findings(self, measured: Sequence[CaseMeasured]) -> Findings:
        """Return the findings of one or more cases, beside the paper's figures."""
        main = _main(measured)
        tables = (_shares(main), _errors(main)) if main else ()
        charts = tuple(
            _chart(main or measured, mechanism, words, value)
            for mechanism in Mechanism
            for words, value in ((_ERROR, CaseMeasured.error), ("1 - U / U_opt", _missing))
        )
        return Findings(
            title=f"Crux's microbenchmark: {count(len(measured))} cases",
            tables=(
                *tables,
                _by_load("U / U_opt by load", measured, CaseMeasured.of_best),
                _by_load(f"{_ERROR} by load", measured, CaseMeasured.error),
            ),
            charts=charts,
            assumptions=_assumptions(self.assume),
        )
