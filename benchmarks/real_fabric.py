"""Measures real hosts over the emulator: ``python benchmarks/real_fabric.py [--json] [--only PART] [options]``.

Hosts are network namespaces, the emulator has real-time priority where that is permitted, and a controller has written
base routing. It takes a quarter of an hour, as root on an otherwise idle machine. Medians of three:

- ``packets_per_s``: full frames (MTU 1500) that reach the other host through two switches, of 400,000 offered;
  ``cores_at_packets``: the cores that the emulator takes meanwhile; ``packets_offered_per_s``: what was really sent.
  BMv2 is not measured.
- ``tcp_mbps``: what one connection brings over links of 200 Mbit/s; ``tcp_mbps_eight_min``: the least of eight, where
  eight hosts send and receive at once; ``cores_at_eight``: what the emulator takes meanwhile.
- ``rtt_idle_median_s``: the round trip of a ping through two idle switches; ``rtt_cs7_loaded_p95_s``: of one in CS7,
  the 95th percentile, on a link whose queue for CS0 two hosts keep full.
- ``high_share``, ``low_share``: what a connection in CS5 and one in CS0 bring where they share a link, over what the
  first brings alone.
- ``clos_gain_points``: GPU utilisation of three stand-in jobs under ``crux`` less that under ``ecmp``
  (``workloads/scenarios/three-jobs.yaml``); ``iteration_time_error``: the worst relative difference of their median
  iteration times from those on the emulator in virtual time; ``starved_iteration_time_error``: that of the job with the
  lowest level under ``crux``.
- ``virtual_time_slowdown``: by how much packet-hops a second of processor time are fewer than in the checkout
  ``--before``, in turns.
- ``fault_rounds``, ``fault_rounds_failed``: kills of random processes of a run at random moments, and after how many
  the rest did not go on, or something was left behind.
"""

import argparse
import asyncio
import sys
from collections.abc import Callable, Mapping
from pathlib import Path

# Run as a file, it finds the packages beside it.
sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from benchmarks.budgets import Budget, budget_rows, print_budget_rows
from benchmarks.provenance import print_figures, provenance
from benchmarks.real_hosts.fault_rounds import SEED, fault_figures
from benchmarks.real_hosts.rates import level_figures, packet_figures, tcp_figures
from benchmarks.real_hosts.three_jobs import job_figures
from benchmarks.real_hosts.virtual_time import virtual_time_figures

FAULT_ROUNDS = 50

Figures = dict[str, object]


BUDGETS = (
    Budget("packets_per_s", 250_000, is_least=True),
    Budget("tcp_mbps", 185, is_least=True),
    Budget("tcp_mbps_eight_min", 180, is_least=True),
    Budget("cores_at_eight", 0.5, is_least=False),
    Budget("rtt_idle_median_s", 0.0005, is_least=False),
    Budget("rtt_cs7_loaded_p95_s", 0.001, is_least=False),
    Budget("high_share", 0.95, is_least=True),
    Budget("low_share", 0.05, is_least=False),
    Budget("clos_gain_points", 7, is_least=True),
    Budget("iteration_time_error", 0.1, is_least=False),
    Budget("starved_iteration_time_error", 0.2, is_least=False),
    Budget("virtual_time_slowdown", 0.03, is_least=False),
    Budget("fault_rounds_failed", 0, is_least=False),
)


def parts_of(options: argparse.Namespace) -> Mapping[str, Callable[[], Figures]]:
    """Return what measures each part, by its name."""
    is_real_time = not options.without_real_time
    return {
        "packets": lambda: asyncio.run(packet_figures(is_real_time=is_real_time)),
        "tcp": lambda: asyncio.run(tcp_figures(is_real_time=is_real_time)),
        "levels": lambda: asyncio.run(level_figures(is_real_time=is_real_time)),
        "jobs": lambda: job_figures(is_real_time=is_real_time),
        "virtual-time": lambda: virtual_time_figures(options.before),
        "faults": lambda: asyncio.run(fault_figures(options.fault_rounds, is_real_time=is_real_time)),
    }


def main() -> None:
    """Measure and print the figures."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    parser.add_argument("--only", metavar="PART", help="packets, tcp, levels, jobs, virtual-time or faults")
    parser.add_argument(
        "--before", type=Path, metavar="CHECKOUT", help="to compare virtual time with; it needs a .venv"
    )
    parser.add_argument("--fault-rounds", type=int, default=FAULT_ROUNDS, help=f"kills (default: {FAULT_ROUNDS})")
    parser.add_argument("--without-real-time", action="store_true", help="do not ask for real-time priority")
    options = parser.parse_args()
    parts = parts_of(options)
    if options.only is not None and options.only not in parts:
        parser.error(f"--only: expected one of {', '.join(parts)}, got {options.only}")
    figures: Figures = {}
    for name, measure in parts.items():
        if options.only in (None, name):
            print(f"measuring {name}", file=sys.stderr, flush=True)
            try:
                figures |= measure()
            except (OSError, RuntimeError) as error:  # the other parts are worth having
                figures[f"{name}_failure"] = str(error)
    rows = budget_rows(BUDGETS, figures)
    figures |= {"budgets": rows, "seed": SEED, **provenance(("finsy", "grpcio", "numba", "numpy"))}
    print_figures(figures, as_json=options.json)
    if not options.json:
        print_budget_rows(rows)


if __name__ == "__main__":
    main()
