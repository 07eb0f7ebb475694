"""Measures where islands are: ``python benchmarks/islands.py [--json] [--rounds N] [--ray PYTHON] [FIGURE …]``.

The benchmark checks all results. A figure is the median of the rounds. What cannot be measured is null, and
``not_measured`` says why.

- ``ray_over_local``: the time of a node of a chain on a Ray cluster over that on processes of this machine. The chain
  is a program of 128 calls that alternate between two hosts, each adding 1 to 4 kB, from the call until the result is
  there. Both runtimes are there at the same time, in one interpreter that has Ray, and run 30 chains in turn; a round
  is a ratio of medians (``benchmarks/islands_ray_worker.py``).
- ``two_islands_share``, ``four_islands_share``, ``data_parallel_share``: how fast a program is on islands of an
  emulated fabric, as a share of how fast it is on one island, where nothing crosses a network. What crosses takes 40 %
  of a step on the fabric (``experiments/real_islands/spread.py``).
- ``two_tenants_echelon_share``, ``two_tenants_fair_share``: how fast the pipeline of two tenants on one link is, as a
  share of how fast it is alone, ranked by EchelonFlow and with fair sharing
  (``experiments/real_islands/comparison.py``).
- ``announced_before_producer_end``: of all of these, the least share of transfers that were announced before what they
  sent had been made.
"""

import argparse
import asyncio
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from statistics import median

# Run as a file, it finds the packages beside it.
sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from benchmarks.budgets import Budget, budget_rows, print_budget_rows
from benchmarks.provenance import print_figures, provenance
from benchmarks.runtime_peers import started_ray
from experiments.real_islands.comparison import alone, compared
from experiments.real_islands.report import share_alone
from experiments.real_islands.spread import pipeline_on, replicas_on, spread
from experiments.scenarios.backend import RunError

BUDGETS = (
    Budget("two_islands_share", 0.97, is_least=True),
    Budget("four_islands_share", 0.96, is_least=True),
    Budget("data_parallel_share", 0.95, is_least=True),
    Budget("two_tenants_echelon_share", 0.93, is_least=True),
    Budget("announced_before_producer_end", 0.99, is_least=True),
    Budget("ray_over_local", 1.3, is_least=False),
)
_TOGETHER_S = 15.0
_ON_A_FABRIC = (
    *("two_islands_share", "four_islands_share", "data_parallel_share"),
    *("two_tenants_echelon_share", "two_tenants_fair_share", "announced_before_producer_end"),
)

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


def on_a_fabric(options: argparse.Namespace) -> Found:
    """Measure programs on islands of an emulated fabric."""
    rounds: dict[str, list[float]] = {name: [] for name in _ON_A_FABRIC}
    try:
        for _ in range(options.rounds):
            for name, value in asyncio.run(_round_on_a_fabric()).items():
                rounds[name].append(value)
    except RunError as error:
        return dict.fromkeys(_ON_A_FABRIC, str(error))
    return rounds


async def _round_on_a_fabric() -> dict[str, float]:
    announced: list[float | None] = []
    figures = {}
    for name, program, islands in (
        ("two_islands_share", pipeline_on, 2),
        ("four_islands_share", pipeline_on, 4),
        ("data_parallel_share", replicas_on, 2),
    ):
        found = await spread(program, islands)
        figures[name] = found.share
        announced.append(found.announced_share)
    alone_s = await alone()
    names = {"ecmp": "two_tenants_fair_share", "echelonflow": "two_tenants_echelon_share"}
    async for each in compared(tuple(names), _TOGETHER_S):
        figures[names[each.policy]] = share_alone(each, alone_s, "pipeline")
        announced.append(each.announced_share)
    return {**figures, "announced_before_producer_end": min(each for each in announced if each is not None)}


GROUPS: Mapping[str, Callable[[argparse.Namespace], Found]] = {"on_a_fabric": on_a_fabric, "on_ray": on_ray}


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
