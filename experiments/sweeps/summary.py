"""The summary of a sweep: GPU utilisation over the seeds, by scenario, settings and policy."""

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from experiments.sweeps.cases import Case, CaseResult, ResultLine
from experiments.sweeps.grid import Settings


@dataclass(frozen=True, slots=True)
class Spread:
    """The distribution of values over seeds.

    Percentiles are interpolated linearly; the standard deviation is that of a sample, and 0 for a single value.
    """

    mean: float
    deviation: float
    p5: float
    p50: float
    p95: float

    @classmethod
    def of(cls, values: Sequence[float]) -> "Spread":
        """Return the distribution of at least one value."""
        p5, p50, p95 = np.percentile(values, (5, 50, 95)).tolist()
        deviation = float(np.std(values, ddof=1)) if len(values) > 1 else 0.0
        return cls(float(np.mean(values)), deviation, p5, p50, p95)


@dataclass(frozen=True, slots=True)
class Cell:
    """One scenario with its settings under one policy, over all seeds.

    ``finished`` and ``failed`` count seeds; without a finished one there are no values. ``limit`` is the mean over the
    seeds of the smaller of the ideal and the fluid bound. ``starved_jobs`` counts those of all seeds; ``worst_speed``
    is the mean over the seeds of the least speed of a job.
    """

    scenario: str
    settings: Settings
    policy: str
    finished: int
    failed: int
    gpu_utilisation: Spread | None
    limit: float | None
    starved_jobs: int
    worst_speed: float | None


def summarise(cases: Iterable[Case], lines: Mapping[str, ResultLine]) -> list[Cell]:
    """Return the cells of a grid in its order, each with the results there are so far."""
    by_cell: dict[tuple[str, str, str], list[Case]] = {}
    for case in cases:
        of = case.description
        by_cell.setdefault((of.scenario, json.dumps(of.settings), of.policy), []).append(case)
    return [_cell(of_cell, lines) for of_cell in by_cell.values()]


def _cell(cases: Sequence[Case], lines: Mapping[str, ResultLine]) -> Cell:
    first = cases[0].description
    known = [line for case in cases if (line := lines.get(case.description.key)) is not None]
    results: list[CaseResult] = [line.result for line in known if line.result is not None]
    return Cell(
        scenario=first.scenario,
        settings=first.settings,
        policy=first.policy,
        finished=len(results),
        failed=len(known) - len(results),
        gpu_utilisation=Spread.of([result.gpu_utilisation for result in results]) if results else None,
        limit=_mean([result.limit for result in results]),
        starved_jobs=sum(result.starved_jobs for result in results),
        worst_speed=_mean([result.worst_speed for result in results if result.worst_speed is not None]),
    )


def _mean(values: Sequence[float]) -> float | None:
    return float(np.mean(values)) if values else None
