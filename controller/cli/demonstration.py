"""``trainyard demo``."""

from pathlib import Path
from typing import Annotated

import typer

from controller.cli.backend import Backend, run_all
from controller.cli.inputs import read_scenario
from controller.cli.outputs import prepare_folder, print_results, save_report
from controller.policy.policy_name import PolicyName
from workloads.loading import SHIPPED_SCENARIOS

_SCENARIO = SHIPPED_SCENARIOS / "fig19-n4.yaml"
_POLICIES = (PolicyName.ECMP, PolicyName.CRUX)

OutOption = Annotated[Path, typer.Option("--out", metavar="DIR", file_okay=False, help="Where demo.html goes.")]


def demo(out: OutOption = Path("out")) -> None:
    """Run the mix of Crux's Figure 19 (n = 4) without and with scheduling; ends with tables and a page of pictures."""
    scenario = read_scenario(_SCENARIO)
    prepare_folder(out)
    results = list(run_all(scenario, _POLICIES, Backend.EMULATOR))
    print_results(results)
    save_report(results, out / "demo.html")
