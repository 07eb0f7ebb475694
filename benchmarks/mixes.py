"""Compares ``trainyard`` with ``ecmp`` and ``crux``: ``python benchmarks/mixes.py [--small-cases 300] [--json]``.

The mixes are those of ``draw.py``, which ``--drawing`` names: 2 to 6 jobs of all parallelisms on small fabrics. Each
runs on the simulator with levels under every policy with run seeds 1 to 3; a mix counts by the mean over these. Small
cases (``small_cases.py``) are compared with the best of all their plans instead; ``--mixes 0`` measures them alone.

A gain is the GPU utilisation of ``trainyard`` minus that of the baseline: the better of ``ecmp`` and ``crux`` of those
that starve nobody, in points.

- ``gain_mean_points``, ``gain_worst_points``: over the mixes; ``gain_worst_run_points``: the worst of a single run.
- ``gain_over_crux_points``: the mean over the mixes of the gain over ``crux`` alone.
- ``gap_closed``: over the mixes in ``best_plans.json``, the sum of the gains over the sum of the gaps from the baseline
  to the best plan known; ``gap_mixes``: how many these are.
- ``starved_jobs``: the jobs that complete no iteration in the window, over all runs, by policy.
- ``worst_job``: the mean over the mixes of the least speed of a job (1 / slowdown, 0 where starved) minus that under
  ``crux``.
- ``alone_slowdown_worst``: over all jobs of the mixes, alone and without jitter, and over all policies: the worst
  iteration time over that under ``ecmp``, minus 1; ``alone_worst`` names the job and the policy.
- ``predicted_within_5_percent``: the share of the jobs, over all runs, whose iterations take as long as the policy says
  in its decision for all jobs, to 5 %; None where it says nothing.

Small cases, with ``--small-cases``; ``--small-cases 300`` takes about three minutes on two cores:

- ``small_ratio_mean``, ``small_ratio_p10``, ``small_ratio_worst``: the worth of the policy's plan over that of the best
  plan; ``small_worst_case`` is the number of the worst case. ``small_ratio_mean_structured`` is over the cases with
  structured jobs alone.
- ``small_ratio_mean_ecmp``, ``small_ratio_mean_crux``: those of the baselines; and ``small_crux_below_ecmp``, the share
  of the cases in which the plan of ``crux`` is worth less than that of ``ecmp``.
- ``small_starving``: by policy, in how many cases its plan starves more jobs than the best one. Its ratio is 0 there.
- ``small_plans_mean``: how many plans a case has.
"""

import argparse
import json
import statistics
import sys
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path

# Run as a file, it finds the packages beside it.
sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from benchmarks.drawn_mixes import (
    BASELINES,
    BEST_PLANS,
    RUN_SEEDS,
    Mix,
    add_options,
    measure,
    measure_all,
    require_drawing,
)
from benchmarks.provenance import print_figures, provenance
from benchmarks.small_cases import figures as small_figures
from benchmarks.small_cases import ratios


def figures(mixes: Sequence[Mix], policy: str) -> dict[str, object]:
    """Return the figures of the mixes."""
    gains = {mix.seed: mix.by_policy[policy].utilisation - mix.baseline.utilisation for mix in mixes}
    run_gains = [
        own - base
        for mix in mixes
        for own, base in zip(mix.by_policy[policy].utilisations, mix.baseline.utilisations, strict=True)
    ]
    over_crux = [mix.by_policy[policy].utilisation - mix.by_policy["crux"].utilisation for mix in mixes]
    speeds = {name: [statistics.mean(mix.by_policy[name].worst_speeds) for mix in mixes] for name in (policy, "crux")}
    well_predicted = [is_well for mix in mixes for is_well in mix.by_policy[policy].well_predicted]
    worst_alone = max(mixes, key=lambda mix: mix.alone_slowdown)
    return {
        "mixes": len(mixes),
        "gain_mean_points": round(statistics.mean(gains.values()) * 100, 3),
        "gain_worst_points": round(min(gains.values()) * 100, 3),
        "gain_worst_mix": min(gains, key=gains.__getitem__),
        "gain_worst_run_points": round(min(run_gains) * 100, 3),
        "gain_over_crux_points": round(statistics.mean(over_crux) * 100, 3),
        **_gap_closed({mix.seed: mix for mix in mixes}, gains),
        "starved_jobs": {
            name: sum(sum(mix.by_policy[name].starved_jobs) for mix in mixes) for name in (*BASELINES, policy)
        },
        "worst_job": round(statistics.mean(speeds[policy]) - statistics.mean(speeds["crux"]), 4),
        "alone_slowdown_worst": round(worst_alone.alone_slowdown, 5),
        "alone_worst": worst_alone.alone_worst,
        "predicted_within_5_percent": round(statistics.mean(well_predicted), 4) if well_predicted else None,
    }


def _gap_closed(mixes: Mapping[int, Mix], gains: Mapping[int, float]) -> dict[str, object]:
    known = json.loads(BEST_PLANS.read_text()) if BEST_PLANS.exists() else {}
    gaps = {
        seed: statistics.mean(known[str(seed)][str(run_seed)] for run_seed in RUN_SEEDS) - mix.baseline.utilisation
        for seed, mix in mixes.items()
        if str(seed) in known
    }
    if not sum(gaps.values()):
        return {"gap_closed": None, "gap_mixes": len(gaps)}
    return {
        "gap_closed": round(sum(gains[seed] for seed in gaps) / sum(gaps.values()), 4),
        "gap_mixes": len(gaps),
    }


def main() -> int:
    """Measure, and print the figures; ends with 2 where the drawing is not there, with 1 where a mix fails."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seed", type=int, default=0, help="the seed of the first mix (default: %(default)s)")
    parser.add_argument("--mixes", type=int, default=20, help="how many mixes (default: %(default)s)")
    parser.add_argument("--small-cases", type=int, default=0, help="how many small cases (default: %(default)s)")
    parser.add_argument("--policy", default="trainyard", help="the policy to compare (default: %(default)s)")
    add_options(parser)
    options = parser.parse_args()
    if options.mixes:
        require_drawing(options.drawing)
    seeds = range(options.seed, options.seed + options.mixes)
    policy = options.policy

    def gain_words(mix: Mix) -> str:
        return f"{(mix.by_policy[policy].utilisation - mix.baseline.utilisation) * 100:+.2f} points"

    measured = partial(measure, options.drawing, policy)
    mixes = list(measure_all("mix", measured, seeds, options.workers, gain_words).values())
    cases = measure_all(
        "small case",
        partial(ratios, policy),
        range(options.small_cases),
        options.workers,
        lambda found: f"{found.by_policy[policy]:.4f}",
    )
    measures = {
        **(figures(mixes, policy) if mixes else {}),
        **(small_figures(cases, policy) if cases else {}),
    }
    print_figures({**measures, "seed": options.seed, **provenance(("numpy", "numba", "scipy"))}, as_json=options.json)
    return 0


if __name__ == "__main__":
    sys.exit(main())
