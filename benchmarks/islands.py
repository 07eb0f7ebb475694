"""Measures where islands are: ``python benchmarks/islands.py [--json] [--rounds N] [--ray PYTHON] [FIGURE …]``.

The benchmark checks all results. A figure is the median of the rounds. What cannot be measured is null, and
``not_measured`` says why.

- ``ray_over_local``: the time of a node of a chain on a Ray cluster over that on processes of this machine. The chain
  is a program of 128 calls that alternate between two hosts, each adding 1 to 4 kB, from the call until the result is
  there. Both runtimes are there at the same time, in one interpreter that has Ray, and run 30 chains in turn; a round
  is a ratio of medians (``benchmarks/islands_ray_worker.py``).
"""

import argparse
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from statistics import median

# Run as a file, it finds the packages beside it.
sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from benchmarks.budgets import Budget, budget_rows, print_budget_rows
from benchmarks.provenance import print_figures, provenance
from benchmarks.runtime_peers import started_ray

BUDGETS = (Budget("ray_over_local", 1.3, is_least=False),)

Found = Mapping[str, list[float] | str]
"""What the rounds found of each figure, or why it was not measured."""


def on_ray(options: argparse.Namespace) -> Found:
    """Measure chains on a Ray cluster beside chains on processes of this machine."""
    ray = started_ray(options.ray, "islands_ray_worker.py")
    if isinstance(ray, str):
        return {"ray_over_local": ray}
    try:
        rounds = [ray.ask("chained") for _ in range(options.rounds)]
    finally:
        ray.close()
    return {
        "ray_over_local": [each["ray"] / each["local"] for each in rounds],
        "ray_s_per_node": [each["ray"] for each in rounds],
        "local_s_per_node": [each["local"] for each in rounds],
    }


GROUPS: Mapping[str, Callable[[argparse.Namespace], Found]] = {"on_ray": on_ray}


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description="Measure where islands are.")
    parser.add_argument("groups", nargs="*", choices=[*GROUPS, []], metavar="FIGURE", help=", ".join(GROUPS))
    parser.add_argument("--ray", metavar="PYTHON", default=sys.executable, help="an interpreter that has Ray")
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    parser.add_argument("--rounds", type=int, default=3, help="of which figures are the medians")
    options = parser.parse_args()
    found: dict[str, list[float] | str] = {}
    for name in options.groups or GROUPS:
        found |= GROUPS[name](options)
    rounds = {name: each for name, each in found.items() if isinstance(each, list)}
    not_measured = {name: each for name, each in found.items() if isinstance(each, str)}
    figures = {name: median(each) for name, each in rounds.items()}
    rows = budget_rows(BUDGETS, {**figures, **dict.fromkeys(not_measured)})
    if options.json:
        result = {**provenance(("numpy",)), **figures, **dict.fromkeys(not_measured)}
        print_figures({**result, "rounds": rounds, "not_measured": not_measured, "budgets": rows}, as_json=True)
        return
    if figures:
        print_figures(figures, as_json=False)
    print_budget_rows(rows)
    for name, reason in not_measured.items():
        print(f"{name:32} not measured: {reason}")


if __name__ == "__main__":
    main()
