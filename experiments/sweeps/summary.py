"""What a sweep has shown: GPU utilisation over the seeds, by scenario, settings and policy."""

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from experiments.sweeps.axes import Settings
from experiments.sweeps.case import Case
from experiments.sweeps.result_line import Measured, ResultLine


@dataclass(frozen=True, slots=True)
class Spread:
    """Values over seeds; percentiles by linear interpolation, the standard deviation that of a sample, 0 for one."""

    mean: float
    deviation: float
    p5: float
    p50: float
    p95: float

    @classmethod
    def of(cls, values: Sequence[float]) -> "Spread":
        """Of at least one value."""
        p5, p50, p95 = np.percentile(values, (5, 50, 95)).tolist()
        deviation = float(np.std(values, ddof=1)) if len(values) > 1 else 0.0
        return cls(float(np.mean(values)), deviation, p5, p50, p95)


@dataclass(frozen=True, slots=True)
class Cell:
    """One scenario with its settings under one policy: seeds finished and failed; None where none is finished.

    ``limit`` is the mean of the smaller of ideal and fluid bound.
    """

    scenario: str
    settings: Settings
    policy: str
    finished: int
    failed: int
    gpu_utilisation: Spread | None
    limit: float | None


def cells(cases: Iterable[Case], lines: Mapping[str, ResultLine]) -> list[Cell]:
    """The cells of a grid in its order, with what there is of each."""
    by_cell: dict[tuple[str, str, str], list[Case]] = {}
    for case in cases:
        asked = case.asked
        by_cell.setdefault((asked.scenario, json.dumps(asked.settings), asked.policy), []).append(case)
    return [_cell(of_cell, lines) for of_cell in by_cell.values()]


def _cell(cases: Sequence[Case], lines: Mapping[str, ResultLine]) -> Cell:
    asked = cases[0].asked
    known = [line for case in cases if (line := lines.get(case.asked.key)) is not None]
    results: list[Measured] = [line.result for line in known if line.result is not None]
    return Cell(
        scenario=asked.scenario,
        settings=asked.settings,
        policy=asked.policy,
        finished=len(results),
        failed=len(known) - len(results),
        gpu_utilisation=Spread.of([result.gpu_utilisation for result in results]) if results else None,
        limit=float(np.mean([result.limit for result in results])) if results else None,
    )
