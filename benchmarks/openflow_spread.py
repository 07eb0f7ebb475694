"""Measures how a real Open vSwitch spreads flows: ``python benchmarks/openflow_spread.py [--json]``.

10,000 UDP and TCP flows go through the SELECT groups of two successive switches of a fat-tree, in the userspace
datapath, for 20 seeds of the fabric's hash. Both switches choose among four ports. It needs Open vSwitch.

- ``bucket_spread``: how far the share of a port is from an even one, at most, as a part of it, over all seeds; that of
  the flows that reach the second switch by one port of the first is ``bucket_spread_behind``;
- ``chi_square_failures``: the number of seeds for which the choices of the two switches depend on each other by
  Pearson's chi-squared test with a p-value below 0.01; ``chi_square_least_p`` is the least one.
"""

import argparse
import sys
from collections.abc import Iterable
from pathlib import Path

# Run as a file, it finds the packages beside it.
sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from benchmarks.provenance import print_figures, provenance
from tests.controller.southbound.openflow.tiers import (
    FIRST,
    SECOND,
    chance_of_dependence,
    running_tiers,
    unevenness,
)
from tests.topologies.builders import FAT_TREE_8
from topologies.ecmp import hash_multipliers
from topologies.namespaces.host_network import NetworkError
from topologies.routing import Routing

NUM_FLOWS = 10_000
SEEDS = range(20)
_UNLIKELY = 0.01


def spread_figures(num_flows: int, seeds: Iterable[int]) -> dict[str, float]:
    """Return the figures. Raises NetworkError where Open vSwitch is not installed."""
    spreads, spreads_behind, chances = [], [], []
    with running_tiers(num_flows) as tiers:
        for seed in seeds:
            routing = Routing(FAT_TREE_8, hash_multipliers(FAT_TREE_8.switches, seed))
            first, second = (tiers.chosen(switch, routing) for switch in (FIRST, SECOND))
            spreads += [unevenness(first), unevenness(second)]
            spreads_behind += [unevenness(second[first == port]) for port in set(first.tolist())]
            chances.append(chance_of_dependence(first, second))
    return {
        "bucket_spread": max(spreads),
        "bucket_spread_behind": max(spreads_behind),
        "chi_square_failures": sum(int(chance < _UNLIKELY) for chance in chances),
        "chi_square_least_p": float(min(chances)),
    }


def main() -> None:
    """Measure, and print the figures."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    arguments = parser.parse_args()
    try:
        figures = spread_figures(NUM_FLOWS, SEEDS)
    except NetworkError as error:
        sys.exit(f"not measured: {error}")
    print_figures({**figures, **provenance(("numpy", "scipy"))}, as_json=arguments.json)


if __name__ == "__main__":
    main()
