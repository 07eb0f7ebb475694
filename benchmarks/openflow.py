"""Measures switches that speak OpenFlow: ``python benchmarks/openflow.py [--json] [options]``.

It runs an Open vSwitch of its own, whose bridge has no interfaces, so that it needs no rights of root. Without Open
vSwitch it says so and measures only what needs none.

- ``flow_mods_encoded_per_s``: flow mods made of entries, in a second of processor time.
- ``flow_mods_prebuilt_per_s``: flow mods that are bytes already, until the switch has carried out the last one;
  ``flow_mod_prebuilt_cpu_us`` is the processor time of the controller for each, and ``flow_mod_switch_cpu_us`` that of
  Open vSwitch.
- ``flow_mods_end_to_end_per_s``: from a Plan, over its rules, their entries and the difference from what switches hold,
  until all eight switches of a Clos have carried out the last one; ``flow_mod_end_to_end_cpu_us`` is the processor time
  of the controller for each.
- ``read_back_10k_s``: all entries asked for, received, decoded and compared with those written, for 10,000 of them.
- ``flows_decoded_per_s``: entries decoded from the replies, in a second of processor time.
- ``link_down_p99_s``: from a port that goes down until all switches have acknowledged the entries that lead around it;
  ``link_down_plan_p99_s`` until they have acknowledged the rules of the next Plan; ``link_down_cpu_median_s`` is the
  processor time of the controller for the first. Both contain the start of the program that takes the port down.
- ``bucket_spread``, ``chi_square_failures``: see ``openflow_spread.py``.
- ``packets_lost_by_kill``: of packets that pass a switch while its controller is killed and starts again;
  ``updates_beyond_difference``: entries that it then wrote although the switches held them.
- ``stale_writes_accepted``: what a switch took from a controller after another one had taken over.
- ``clos_gain_error_points``: how far what ``crux`` adds to ``ecmp``'s GPU utilisation on real hosts, in points, is from
  what the emulator predicts; see ``openflow_cases/clos_gain.py``. Needs network namespaces, and takes six minutes.

Figures are medians of ``--rounds``, over OpenFlow 1.5; those over 1.3 end in ``_1_3``. ``--only`` measures one part.
"""

import argparse
import asyncio
import logging
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

# Run as a file, it finds the packages beside it.
sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from benchmarks.budgets import Budget, budget_rows, print_budget_rows
from benchmarks.openflow_cases.clos_gain import clos_gain_figures
from benchmarks.openflow_cases.failovers import failover_figures
from benchmarks.openflow_cases.killed import kill_figures
from benchmarks.openflow_cases.link_down import link_down_figures
from benchmarks.openflow_cases.messages import codec_figures, entries, switch_figures
from benchmarks.openflow_cases.plans import plan_figures
from benchmarks.openflow_spread import spread_figures
from benchmarks.provenance import print_figures, provenance
from controller.process.latency import tune_for_latency
from topologies.openvswitch.daemons import missing_programs

BUDGETS = (
    Budget("flow_mods_encoded_per_s", 20_000, is_least=True),
    Budget("flow_mods_prebuilt_per_s", 100_000, is_least=True),
    Budget("flow_mods_end_to_end_per_s", 20_000, is_least=True),
    Budget("read_back_10k_s", 1.0, is_least=False),
    Budget("link_down_p99_s", 0.1, is_least=False),
    Budget("bucket_spread", 0.15, is_least=False),
    Budget("chi_square_failures", 1, is_least=False),
    Budget("packets_lost_by_kill", 0, is_least=False),
    Budget("updates_beyond_difference", 0, is_least=False),
    Budget("stale_writes_accepted", 0, is_least=False),
    Budget("clos_gain_error_points", 3, is_least=False),
)

Figures = dict[str, object]


@dataclass(frozen=True)
class Sizes:
    """How much is measured.

    Attributes:
        flows: How many flows have an entry, and how many go through groups.
        rounds: How often rates are measured.
        seeds: The number of seeds of the fabric's hash.
        link_downs: How many ports go down.
        kills: How often a controller is killed.
        failovers: How often two controllers take over from each other.
        failover_flows: How many entries the former master is writing meanwhile.
        clos_seeds: With how many seeds of the fabric's hash jobs run on real hosts.
        clos_s: How long they run.
    """

    flows: int = 10_000
    rounds: int = 9
    seeds: int = 20
    link_downs: int = 64
    kills: int = 3
    failovers: int = 50
    failover_flows: int = 2_000
    clos_seeds: int = 5
    clos_s: float = 20


def parts_of(sizes: Sizes) -> Mapping[str, Callable[[], Figures]]:
    """Return what measures each part with a real Open vSwitch, by its name."""
    return {
        "messages": lambda: _message_figures(sizes),
        "plans": lambda: {**asyncio.run(plan_figures(sizes.flows, sizes.rounds))},
        "link-down": lambda: {**asyncio.run(link_down_figures(sizes.link_downs))},
        "spread": lambda: {**spread_figures(sizes.flows, range(sizes.seeds))},
        "kills": lambda: {**asyncio.run(kill_figures(sizes.kills))},
        "failovers": lambda: {**asyncio.run(failover_figures(sizes.failovers, sizes.failover_flows))},
        "clos": lambda: clos_gain_figures(range(1, 1 + sizes.clos_seeds), sizes.clos_s),
    }


def measure(sizes: Sizes, only: str | None = None) -> Figures:
    """Return the figures of all parts, or of one."""
    figures: Figures = {"flows": sizes.flows, "rounds": sizes.rounds}
    figures |= codec_figures(entries(sizes.flows), sizes.rounds)
    if missing := missing_programs():
        return figures | {"openvswitch": f"not measured: {', '.join(missing)} not found"}
    for name, part in parts_of(sizes).items():
        if only in (None, name):
            print(f"measuring {name}", file=sys.stderr, flush=True)
            figures |= part()
    return figures


def _message_figures(sizes: Sizes) -> Figures:
    flows, figures = entries(sizes.flows), Figures()
    for version, ending in ((6, ""), (4, "_1_3")):
        found = asyncio.run(switch_figures(flows, version, sizes.rounds))
        figures |= {f"{name}{ending}": value for name, value in found.items()}
    return figures


def main() -> None:
    """Measure and print the figures."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    parser.add_argument(
        "--only", metavar="PART", choices=tuple(parts_of(Sizes())), help="measure one part: %(choices)s"
    )
    parser.add_argument("--flows", type=int, default=Sizes.flows, help="how many flows have an entry (%(default)s)")
    parser.add_argument("--rounds", type=int, default=Sizes.rounds, help="how often rates are measured (%(default)s)")
    options = parser.parse_args()
    tune_for_latency()  # as the controller's process does
    logging.disable(logging.WARNING)  # that switches are away when their daemon ends
    figures = measure(Sizes(flows=options.flows, rounds=options.rounds), options.only)
    rows = budget_rows(BUDGETS, figures)
    figures |= provenance(("numpy", "scipy"))
    print_figures(figures | ({"budgets": rows} if options.json else {}), as_json=options.json)
    if not options.json:
        print_budget_rows(rows)


if __name__ == "__main__":
    main()
