"""Measures PyTorch jobs on real hosts: ``python benchmarks/real_jobs.py [--json] [--only PART] [options]``.

Hosts are network namespaces over the emulator, under the real controller; jobs train over gloo. It needs `make torch`,
and takes forty minutes on an otherwise idle machine. Medians of three:

- ``prioritised_slowdown``: by how much a prioritised job's iterations take longer than alone, under ``crux``;
  ``clos_gain_points``, ``trainyard_gain_points``: GPU utilisation under ``crux`` and ``trainyard`` less that under
  ``ecmp`` (``workloads/scenarios/three-torch-jobs.yaml``); ``iteration_time_error``: the worst relative difference of
  iteration times from those on the emulator in virtual time, under ``crux``; ``starved_iteration_time_error``: that of
  the job with the lowest level.
- ``attach_s_per_collective``, ``attach_profiling_s_per_collective``: processor time that a collective takes more while
  it is observed, and while waits are recorded, too.
- ``attach_step_overhead``: by how much a DDP step of a model with 10 million parameters takes longer where it is
  attached; ``fail_open_slowdown``: the same where no controller answers. Each has a 95 % confidence interval, and a
  ``…_processor_share``: what the host library takes of the step's processor time.
- ``template_registered_iterations``: iterations until the controller has acknowledged what the job sends;
  ``level_in_force_s``: how much later its connections have a level.
"""

import argparse
import sys
from collections.abc import Callable, Mapping
from pathlib import Path

# Run as a file, it finds the packages beside it.
sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from benchmarks.budgets import Budget, budget_rows, print_budget_rows
from benchmarks.provenance import print_figures, provenance
from benchmarks.torch_jobs.clos import clos_figures
from benchmarks.torch_jobs.collective_cost import collective_figures
from benchmarks.torch_jobs.registration import registration_figures
from benchmarks.torch_jobs.step_cost import step_figures
from experiments.scenarios.backend import RunError

RUNS = 3

Figures = dict[str, object]

BUDGETS = (
    Budget("prioritised_slowdown", 0.05, is_least=False),
    Budget("clos_gain_points", 7, is_least=True),
    Budget("trainyard_gain_points", 7, is_least=True),
    Budget("iteration_time_error", 0.1, is_least=False),
    Budget("starved_iteration_time_error", 0.2, is_least=False),
    Budget("attach_s_per_collective", 10e-6, is_least=False),
    Budget("attach_profiling_s_per_collective", 20e-6, is_least=False),
    Budget("fail_open_slowdown", 0.005, is_least=False),
    Budget("attach_step_overhead", 0.005, is_least=False),
    Budget("fail_open_slowdown_processor_share", 0.005, is_least=False),
    Budget("attach_step_overhead_processor_share", 0.005, is_least=False),
    Budget("template_registered_iterations", 3, is_least=False),
    Budget("level_in_force_s", 0.2, is_least=False),
)


def parts_of(options: argparse.Namespace) -> Mapping[str, Callable[[], Figures]]:
    """Return what measures each part, by its name."""
    return {
        "clos": lambda: clos_figures(options.runs, is_real_time=options.real_time),
        "cost": lambda: _cost_figures(options.runs),
        "registration": lambda: registration_figures(options.runs, is_real_time=options.real_time),
    }


def _cost_figures(runs: int) -> Figures:
    collectives = collective_figures(runs)
    s_per_collective = collectives["attach_s_per_collective"]
    assert isinstance(s_per_collective, float)
    return collectives | step_figures(runs, s_per_collective)


def main() -> None:
    """Measure and print the figures."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    parser.add_argument("--only", metavar="PART", help="clos, cost or registration")
    parser.add_argument("--runs", type=int, default=RUNS, help=f"of which figures are medians (default: {RUNS})")
    parser.add_argument("--real-time", action="store_true", help="ask for real-time priority for the emulator")
    options = parser.parse_args()
    parts = parts_of(options)
    if options.only is not None and options.only not in parts:
        parser.error(f"--only: expected one of {', '.join(parts)}, got {options.only}")
    figures: Figures = {}
    for name, measure in parts.items():
        if options.only in (None, name):
            print(f"measuring {name}", file=sys.stderr, flush=True)
            try:
                figures |= measure()
            except (OSError, RunError, RuntimeError) as error:  # the other parts are worth having
                figures[f"{name}_failure"] = str(error)
    rows = budget_rows(BUDGETS, figures)
    figures |= {"budgets": rows, **provenance(("finsy", "grpcio", "numba", "torch"))}
    print_figures(figures, as_json=options.json)
    if not options.json:
        print_budget_rows(rows)


if __name__ == "__main__":
    main()
