"""Jobs as they are: models by their layers, and iterations by their parallelism, against what was published.

    python benchmarks/jobs.py --json

Needs no accelerator and no network, and takes about a minute of processor time.
"""

import argparse
import sys
from pathlib import Path

# Run as a file, it finds the packages beside it.
sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from benchmarks.chakra_traces import import_nodes_per_s
from benchmarks.every_rank import bundled_errors, simulate_1024
from benchmarks.provenance import print_figures, provenance
from benchmarks.published_models import errors, llama_error, worst_error
from benchmarks.published_runs import ASSUMPTIONS, fitted_efficiency, rows, time_errors

BUDGET = 0.01
"""The largest relative error of parameters and FLOPs."""
MEDIAN_TIME_BUDGET, WORST_TIME_BUDGET = 0.1, 0.2
"""Relative errors of iteration times, without the row that the efficiency is fitted to."""

LEAST_NODES_PER_S = 200_000
"""Of Chakra traces, read and joined."""

BUNDLED_BUDGET = 0.01
"""The largest relative error of the end of an iteration against every task and flow by itself, on 64 to 256 ranks."""
SIMULATE_1024_BUDGET_S, SIMULATE_1024_BUDGET_BYTES = 60.0, 4 * 2**30


def main() -> int:
    """Print the figures; return 1 where one is over its budget."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    arguments = parser.parse_args()
    runs = list(rows())
    median, worst = time_errors(runs)
    nodes_per_s = import_nodes_per_s()
    bundled, large = bundled_errors(), simulate_1024()
    figures: dict[str, object] = {
        "llama_flops_error": llama_error(),
        "published_counts_error": worst_error(),
        "megatron_time_median_error": median,
        "megatron_time_worst_error": worst,
        "chakra_import_nodes_per_s": nodes_per_s,
        "bundled_error": max(bundled.values()),
        **large,
        "published_counts": list(errors()),
        "megatron_runs": runs,
        "megatron_efficiency": fitted_efficiency(),
        "megatron_assumptions": ASSUMPTIONS,
        "bundled_errors": bundled,
        **provenance(("trainyard", "pydantic")),
    }
    print_figures(figures, as_json=arguments.json)
    is_slow = nodes_per_s < LEAST_NODES_PER_S or large["simulate_1024_s"] > SIMULATE_1024_BUDGET_S
    is_large = large["simulate_1024_memory_bytes"] > SIMULATE_1024_BUDGET_BYTES
    is_wrong = max(bundled.values()) > BUNDLED_BUDGET or worst_error() > BUDGET
    return int(is_slow or is_large or is_wrong or median > MEDIAN_TIME_BUDGET or worst > WORST_TIME_BUDGET)


if __name__ == "__main__":
    sys.exit(main())
