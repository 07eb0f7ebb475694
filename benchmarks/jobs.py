"""Jobs as they are: models by their layers, and iterations by their parallelism, against what was published.

    python benchmarks/jobs.py --json

Needs no accelerator and no network. Advice takes some six minutes of processor time (``--cases``).
"""

import argparse
import sys
from dataclasses import asdict
from pathlib import Path

# Run as a file, it finds the packages beside it.
sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from benchmarks.advice import NUM_CASES, ratios, worst_and_median
from benchmarks.chakra_traces import import_nodes_per_s
from benchmarks.every_rank import bundled_errors, simulate_1024
from benchmarks.provenance import print_figures, provenance
from benchmarks.published_models import errors, llama_error, worst_error
from benchmarks.published_runs import PublishedTable
from benchmarks.published_tables import TABLES

BUDGET = 0.01
"""The largest relative error of parameters and FLOPs."""
MEDIAN_TIME_BUDGET, WORST_TIME_BUDGET = 0.1, 0.2
"""Relative errors of iteration times, without the row that the efficiency is fitted to."""

LEAST_NODES_PER_S = 200_000
"""Of Chakra traces, read and joined."""
ADVISE_BUDGET = 1.05
"""The time of advice's first choice over the best alternative that was simulated, in the worst case."""

BUNDLED_BUDGET = 0.01
"""The largest relative error of the end of an iteration against every task and flow by itself, on 64 to 256 ranks."""
SIMULATE_1024_BUDGET_S, SIMULATE_1024_BUDGET_BYTES = 60.0, 4 * 2**30


def main() -> int:
    """Print the figures; return 1 where one is over its budget."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    parser.add_argument("--cases", type=int, default=NUM_CASES, metavar="N", help="drawn cases of advice")
    arguments = parser.parse_args()
    nodes_per_s = import_nodes_per_s()
    bundled, large = bundled_errors(), simulate_1024()
    advised = list(ratios(arguments.cases))
    worst_ratio, median_ratio = worst_and_median(advised)
    figures: dict[str, object] = {
        "llama_flops_error": llama_error(),
        "published_counts_error": worst_error(),
        "chakra_import_nodes_per_s": nodes_per_s,
        "bundled_error": max(bundled.values()),
        **large,
        "published_counts": list(errors()),
        "advise_ratio": worst_ratio,
        "advise_median_ratio": median_ratio,
        "advise_cases": advised,
        "bundled_errors": bundled,
        **{key: figure for table in TABLES for key, figure in _figures(table).items()},
        **provenance(("trainyard", "pydantic")),
    }
    print_figures(figures, as_json=arguments.json)
    is_slow = nodes_per_s < LEAST_NODES_PER_S or large["simulate_1024_s"] > SIMULATE_1024_BUDGET_S
    is_large = large["simulate_1024_memory_bytes"] > SIMULATE_1024_BUDGET_BYTES
    is_far = any(table.median_error > MEDIAN_TIME_BUDGET or table.worst_error > WORST_TIME_BUDGET for table in TABLES)
    is_wrong = worst_error() > BUDGET or max(bundled.values()) > BUNDLED_BUDGET or worst_ratio > ADVISE_BUDGET
    return int(is_slow or is_large or is_far or is_wrong)


def _figures(table: PublishedTable) -> dict[str, object]:
    """Return a table's errors, its rows, and what they assume."""
    runs = [asdict(row) | {"error": row.error} for row in table.rows]
    return {
        f"{table.name}_time_median_error": table.median_error,
        f"{table.name}_time_worst_error": table.worst_error,
        f"{table.name}_efficiency": table.efficiency,
        f"{table.name}_fitted": table.fitted,
        f"{table.name}_source": table.source,
        f"{table.name}_assumptions": table.assumptions,
        f"{table.name}_runs": runs,
    }


if __name__ == "__main__":
    sys.exit(main())
