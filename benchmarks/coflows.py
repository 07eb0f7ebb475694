"""Times coflow ordering and rate allocation: ``python benchmarks/coflows.py FILE [--json]``.

Budget: BSSI in 0.05 s. The file is FB2010-1Hr-150-0.txt of github.com/coflow/coflow-benchmark; all 526 coflows
arrive at the start.
"""

import argparse
import sys
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np

# Run as a file, it finds the packages beside it.
sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from benchmarks.provenance import print_figures, provenance
from policies.baselines.sincronia import bssi
from policies.baselines.varys import bottleneck_times, sebf
from policies.rates.echelon import echelon_madd
from policies.rates.loads import remaining_by_link
from policies.rates.madd import madd
from policies.rates.max_min import max_min
from policies.rates.network import Network, Order
from workloads.coflow_trace import CoflowTrace, parse_coflow_trace

PORT_BPS = 2.0**30
REPETITIONS = 5


def measure(trace: CoflowTrace) -> dict[str, float]:
    """Return the best time of each function over some repetitions, after compilation."""
    num_links, ends = 2 * trace.num_ports, trace.starts
    paths = list(zip(trace.sources.tolist(), (trace.num_ports + trace.destinations).tolist(), strict=True))
    network, remaining = Network.of(np.full(num_links, PORT_BPS), paths), trace.size_bytes
    order = Order(np.arange(len(paths)), ends[:-1], ends[1:])
    one_level = Order.by_rank(order.flows, np.zeros_like(order.flows))
    ones = np.ones(len(ends) - 1)
    by_link = remaining_by_link(network, order, remaining)
    # Every coflow has about ten stages, one second apart.
    due_s = np.concatenate([np.sort(np.arange(size) % 10.0) for size in np.diff(ends)])
    smallest_first = order.rearranged(sebf(bottleneck_times(by_link), ones))
    return {
        "num_flows": len(paths),
        "bssi_526_s": _best(lambda: bssi(by_link, ones)),
        "sebf_526_s": _best(lambda: sebf(bottleneck_times(by_link), ones)),
        "loads_s": _best(lambda: remaining_by_link(network, order, remaining)),
        "madd_s": _best(lambda: madd(network, smallest_first, remaining)),
        "echelon_madd_s": _best(lambda: echelon_madd(network, smallest_first, remaining, due_s)),
        "max_min_s": _best(lambda: max_min(network, one_level, np.ones(len(paths)))),
    }


def _best(call: Callable[[], object]) -> float:
    call()
    times_s = []
    for _ in range(REPETITIONS):
        started_s = time.perf_counter()
        call()
        times_s.append(time.perf_counter() - started_s)
    return min(times_s)


def main() -> None:
    """Measure and print the figures."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("file", type=Path)
    parser.add_argument("--json", action="store_true")
    arguments = parser.parse_args()
    figures = measure(parse_coflow_trace(arguments.file.read_text()))
    print_figures(figures | provenance(("numpy", "scipy", "numba")), as_json=arguments.json)


if __name__ == "__main__":
    main()
