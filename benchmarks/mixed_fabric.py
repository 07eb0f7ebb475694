"""Compares fabrics that are not all ours: ``python benchmarks/mixed_fabric.py [--mixes 3] [--json]``.

The mixes are those of ``draw.py`` (see ``mixes.py``) on fat-trees, k = 4, on the simulator with levels, with run seeds
1 to 3. Each runs on the same fabric in five ways:

- ``ours``: the controller writes base routing and rules everywhere.
- ``other_routing``: another client has filled base routing, with hashes and an order of its own; rules are ours.
- ``dscp_only_cores``: the core switches are ordinary, and hash as nobody knows; they have one way to every host.
- ``mixed``: other routing; the aggregation switches of half of the pods are ordinary, which hash over two ways up.
- ``dscp_only``: all switches are ordinary, so that levels are left, and no paths.

No host probes, so that the controller guesses what ordinary switches do with a flow. Figures are GPU utilisation in
per cent, the mean over mixes and run seeds, by policy; ``starved`` counts the jobs that completed no iteration in the
window; ``worst_mix`` is the least difference of ``mixed`` from ``ours`` of one mix under the policy, in points.
"""

import argparse
import statistics
import sys
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path

# Run as a file, it finds the packages beside it.
sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from benchmarks.drawn_mixes import add_options, measure_all, require_drawing
from benchmarks.fabric_ways import POLICIES, measure
from benchmarks.provenance import print_figures, provenance
from experiments.scenarios.results import RunResult

FIRST_SEED, SEED_STEP = 2, 3
"""The drawings on fat-trees."""


def figures(mixes: Sequence[Mapping[str, Mapping[str, Sequence[RunResult]]]]) -> dict[str, object]:
    """Return the figures of the mixes."""
    found: dict[str, object] = {"mixes": len(mixes)}
    for policy in POLICIES:
        for way in mixes[0][policy]:
            runs = [result for mix in mixes for result in mix[policy][way]]
            found[f"{policy}_{way}"] = round(100 * statistics.mean(each.gpu_utilisation for each in runs), 2)
            found[f"{policy}_{way}_starved"] = sum(each.starved_jobs for each in runs)
        found[f"{policy}_worst_mix"] = round(100 * min(_utilisation(mix[policy]) for mix in mixes), 2)
    return found


def _utilisation(runs: Mapping[str, Sequence[RunResult]]) -> float:
    mixed, ours = (statistics.mean(each.gpu_utilisation for each in runs[way]) for way in ("mixed", "ours"))
    return mixed - ours


def main() -> int:
    """Measure, and print the figures; ends with 2 where the drawing is not there, with 1 where a mix fails."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--mixes", type=int, default=3, help="how many mixes (default: %(default)s)")
    add_options(parser)
    options = parser.parse_args()
    require_drawing(options.drawing)
    seeds = [FIRST_SEED + SEED_STEP * number for number in range(options.mixes)]
    measured = partial(measure, options.drawing)
    mixes = list(measure_all("mix", measured, seeds, options.workers, lambda _: "measured").values())
    print_figures({**figures(mixes), **provenance(("numpy", "numba"))}, as_json=options.json)
    return 0


if __name__ == "__main__":
    sys.exit(main())
