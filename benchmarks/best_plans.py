"""Searches drawn mixes for the best plans: ``python benchmarks/best_plans.py [--seed 0] [--mixes 50] [--plans 334]``.

For each mix and each of three run seeds, a search plays so many plans (``plan_search``), some thousand in all for a
mix, from those of every shipped policy; the best of them then runs on the simulator as every policy does, with jitter.
What it reaches, or the best shipped policy where that reaches more, is the best known GPU utilisation. It goes to
``best_plans.json``, by mix and run seed, as soon as a mix is finished; mixes that stand there are left out. The figure
``gap_closed`` of ``mixes.py`` comes from it.
"""

import argparse
import json
import sys
from functools import partial
from pathlib import Path

# Run as a file, it finds the packages beside it.
sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from benchmarks.drawn_mixes import BEST_PLANS, DRAWING, best_known, require_drawing
from experiments.sweeps.processes import Failure, num_cores, on_processes


def main() -> int:
    """Search; ends with 2 where the drawing is not there, with 1 where a mix failed."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seed", type=int, default=0, help="the seed of the first mix (default: %(default)s)")
    parser.add_argument("--mixes", type=int, default=50, help="how many mixes (default: %(default)s)")
    parser.add_argument("--plans", type=int, default=334, help="plans for each mix and run seed (default: %(default)s)")
    parser.add_argument("--drawing", type=Path, default=DRAWING, help="the program that draws (default: %(default)s)")
    parser.add_argument("--output", type=Path, default=BEST_PLANS, help="where they go (default: %(default)s)")
    parser.add_argument("--workers", type=int, default=num_cores(), help="processes (default: %(default)s)")
    options = parser.parse_args()
    require_drawing(options.drawing)
    known = json.loads(options.output.read_text()) if options.output.exists() else {}
    left = [seed for seed in range(options.seed, options.seed + options.mixes) if str(seed) not in known]
    has_failed = False
    for seed, found in on_processes(partial(best_known, options.drawing, options.plans), left, options.workers):
        if isinstance(found, Failure):
            print(f"mix {seed}: {found.reason}", file=sys.stderr)
            has_failed = True
            continue
        print(f"mix {seed}: {', '.join(f'{share:.4f}' for share in found.values())}", file=sys.stderr, flush=True)
        known[str(seed)] = {str(run_seed): round(share, 5) for run_seed, share in found.items()}
        ordered = {key: known[key] for key in sorted(known, key=int)}
        # Replaced at once: a search that is ended halfway leaves all finished mixes behind.
        written = options.output.with_suffix(".new")
        written.write_text(json.dumps(ordered, indent=1) + "\n")
        written.replace(options.output)
    return int(has_failed)


if __name__ == "__main__":
    sys.exit(main())
