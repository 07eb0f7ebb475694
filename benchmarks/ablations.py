"""What each part of ``trainyard`` is worth: ``python benchmarks/ablations.py [--mixes 20] [--json]``.

The policy runs whole, and with one part left out at a time, on the mixes of ``mixes.py`` with one run seed. For each:

- ``gain_mean_points``, ``gain_worst_points``: its GPU utilisation minus that of the better of ``ecmp`` and ``crux``, of
  those that starve nobody.
- ``starved_jobs``: the jobs that complete no iteration in the window, of all mixes.
- ``worst_job``: the least speed of a job (1 / slowdown, 0 where starved) minus that under ``crux``, mean.
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
from benchmarks.policy_variants import VARIANTS, Comparison, measure
from benchmarks.provenance import print_figures, provenance


def figures(mixes: Sequence[dict[str, Comparison]]) -> dict[str, object]:
    """Return the figures of the variants."""
    return {
        name: {
            "gain_mean_points": round(statistics.mean(mix[name].gain for mix in mixes) * 100, 2),
            "gain_worst_points": round(min(mix[name].gain for mix in mixes) * 100, 2),
            "starved_jobs": sum(mix[name].starved_jobs for mix in mixes),
            "worst_job": round(statistics.mean(mix[name].worst_job for mix in mixes), 4),
        }
        for name in VARIANTS
    }


def main() -> int:
    """Measure, and print the figures; ends with 2 where the drawing is not there, with 1 where a mix fails."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seed", type=int, default=0, help="the seed of the first mix (default: %(default)s)")
    parser.add_argument("--mixes", type=int, default=20, help="how many mixes (default: %(default)s)")
    add_options(parser)
    options = parser.parse_args()
    require_drawing(options.drawing)
    seeds = range(options.seed, options.seed + options.mixes)
    measured = partial(measure, options.drawing)

    def words(found: Mapping[str, Comparison]) -> str:
        return f"{found['whole'].gain * 100:+.2f} points"

    mixes = list(measure_all("mix", measured, seeds, options.workers, words).values())
    measures = {"mixes": len(mixes), **figures(mixes), "seed": options.seed}
    print_figures({**measures, **provenance(("numpy", "numba", "scipy"))}, as_json=options.json)
    return 0


if __name__ == "__main__":
    sys.exit(main())
