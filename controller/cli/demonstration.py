"""``trainyard demo``."""

from pathlib import Path
from typing import Annotated

import typer

from controller.cli.backend import run_all
from controller.cli.inputs import read_scenario
from controller.cli.outputs import prepare_folder, print_overview, print_results, save_report
from controller.policy.policy_name import PolicyName
from controller.run.backend import Backend
from workloads.loading import SHIPPED_SCENARIOS

SCENARIOS = ("fig19-n4", "fig20", "pipeline", "fewer-uplinks")
POLICIES = (PolicyName.ECMP, PolicyName.CRUX_PA, PolicyName.CRUX)

OutOption = Annotated[Path, typer.Option("--out", metavar="DIR", file_okay=False, help="Where demo.html goes.")]


def demo(out: OutOption = Path("out")) -> None:
    """Run mixes of the paper without scheduling, with levels alone, and with paths too; ends with tables and a page."""
    scenarios = [read_scenario(SHIPPED_SCENARIOS / f"{name}.yaml") for name in SCENARIOS]
    prepare_folder(out)
    comparisons = []
    for scenario in scenarios:
        comparisons.append(list(run_all(scenario, POLICIES, Backend.EMULATOR)))
        print_results(comparisons[-1])
    print_overview(comparisons)
    save_report(comparisons, out / "demo.html")
