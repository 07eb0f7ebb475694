"""Sweeps: scenarios under every policy, setting and seed, on all cores."""

import hashlib
import json
from collections.abc import Iterable, Mapping, Sequence
from contextlib import closing
from dataclasses import asdict, dataclass
from functools import partial
from os import PathLike
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

from experiments.scenarios.backend import Backend
from experiments.sweeps.cases import ResultLine
from experiments.sweeps.grid import Axis, ScenarioFile, build_grid, combinations
from experiments.sweeps.output import missing_cases, open_output, run_cases
from experiments.sweeps.processes import num_cores, on_processes
from experiments.sweeps.summary import Cell, summarise
from policies.enforcement import Enforcement
from policies.policy import Policy
from policies.registry import DEFAULT_POLICY, as_policy, policy_names, source_of
from trainyard.frames import frame_of
from trainyard.progress import counted
from trainyard.scenarios import ScenarioLike, build_scenario, document_of
from workloads.scenario import Scenario

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure


@dataclass(frozen=True)
class SweepResult:
    """A sweep: ``cells`` sum up the seeds of each scenario, setting and policy; ``lines`` has every run."""

    cells: tuple[Cell, ...]
    lines: tuple[ResultLine, ...]

    @property
    def failures(self) -> tuple[ResultLine, ...]:
        """The runs that failed, each with its ``error``."""
        return tuple(line for line in self.lines if line.error is not None)

    def to_dict(self) -> dict[str, Any]:
        """Return the cells as ``trainyard sweep --json`` prints them, and the runs as its output file has them."""
        return {
            "cells": [asdict(cell) for cell in self.cells],
            "runs": [line.model_dump(mode="json") for line in self.lines],
        }

    def to_frame(self) -> "pd.DataFrame":
        """Return a pandas DataFrame with a row for each finished run; settings are columns.

        Raises:
            ImportError: pandas is not installed.
        """
        return frame_of(
            [
                {"scenario": line.scenario, "policy": line.policy, "seed": line.seed}
                | line.settings
                | {
                    "gpu_utilisation": line.result.gpu_utilisation,
                    "ideal_gpu_utilisation": line.result.ideal_gpu_utilisation,
                    "fluid_bound_gpu_utilisation": line.result.fluid_bound_gpu_utilisation,
                    "starved_jobs": line.result.starved_jobs,
                    "worst_speed": line.result.worst_speed,
                }
                for line in self.lines
                if line.result is not None
            ]
        )

    def plot(self) -> "Figure":
        """Return a figure of the mean utilisation of every cell, with its deviation over the seeds.

        Raises:
            ValueError: No run has finished.
        """
        from experiments.report.figures import plot_sweep

        return plot_sweep(self.cells)


def sweep(
    scenarios: ScenarioLike | Sequence[ScenarioLike],
    policies: Sequence[Policy | str] = (),
    *,
    seeds: int | Iterable[int] = 10,
    settings: Mapping[str, Sequence[Any]] | None = None,
    on: Backend | str = Backend.SIMULATOR,
    enforcement: Enforcement | str = Enforcement.LEVELS,
    workers: int | None = None,
    output: str | Path | None = None,
    progress: bool = True,
) -> SweepResult:
    """Run scenarios under every combination of settings, policies and seeds.

    A run that fails leaves the others alone; it is among ``failures``.

    Args:
        scenarios: One or several: scenarios, their mappings, or paths of their files.
        policies: Policies or names of registered ones; none: each scenario's own, else Crux. A policy that is not
            registered must come from ``load_policy("module:attribute")``, as other processes have to load it.
        seeds: The seeds, or how many of them, from 1.
        settings: Values by scenario key (``{"reaction_delay_s": [0, 1]}``), each an axis of the grid.
        on: The back end, as for ``run``.
        enforcement: As for ``run``.
        workers: Processes; None: one for every core.
        output: A file that keeps every finished run, as ``trainyard sweep --out`` does: called again, the sweep
            runs only what is missing there. None: nothing is kept.
        progress: Whether to show it, as a bar on terminals and in notebooks and elsewhere as a line every 30 s.

    Raises:
        ScenarioError: A scenario, or a setting of one, cannot be used.
        PolicyError: No policy of that name is registered.
        ValueError: A setting, a policy, a seed or the number of workers cannot be used; the message names it.
        OutputError: The output cannot be used.
    """
    if isinstance(policies, str):
        raise ValueError(f"policies: expected a sequence, got {policies!r}")
    if workers is not None and workers < 1:
        raise ValueError(f"workers: expected at least 1, got {workers}")
    for key, values in (settings or {}).items():
        if isinstance(values, str) or not isinstance(values, Sequence):
            raise ValueError(f"settings: {key}: expected a sequence of values, got {values!r}")
    sources = [scenarios] if isinstance(scenarios, Scenario | Mapping | str | PathLike) else list(scenarios)
    grid = build_grid(
        [_scenario_file(source) for source in sources],
        list(combinations(Axis(key, tuple(values)) for key, values in (settings or {}).items())),
        [source_of(as_policy(policy)) for policy in policies],
        range(1, seeds + 1) if isinstance(seeds, int) else list(seeds),
        Backend(on),
        Enforcement(enforcement),
    )
    executor = partial(on_processes, workers=workers or num_cores())
    with TemporaryDirectory(prefix="trainyard-") as folder:
        path = Path(folder) / "sweep.jsonl" if output is None else Path(output)
        with open_output(path, [case.description for case in grid]) as opened:
            left = missing_cases(grid, opened)
            with (
                counted("runs", len(left), show=progress) as advance,
                closing(run_cases(left, opened, executor)) as lines,
            ):
                for _ in lines:
                    advance()
            kept = opened.lines
    return SweepResult(tuple(summarise(grid, kept)), tuple(kept[case.description.key] for case in grid))


def _scenario_file(source: ScenarioLike) -> ScenarioFile:
    """Return the scenario as a sweep keeps it: by the hash of its file or, where there is none, of its content."""
    if isinstance(source, str | PathLike):
        return ScenarioFile.read(Path(source), policy_names())
    scenario = build_scenario(source)
    document = document_of(scenario)
    digest = hashlib.sha256(json.dumps(document, sort_keys=True).encode()).hexdigest()
    return ScenarioFile(Path(scenario.name), scenario.name, scenario.policy or DEFAULT_POLICY, digest, document)
