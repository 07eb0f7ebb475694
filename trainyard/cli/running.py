"""``trainyard run``."""

import json
from typing import Annotated

import typer

from experiments.report.style import FigureFormat
from experiments.scenarios.backend import Backend
from experiments.scenarios.results import run_object
from policies.enforcement import Enforcement
from trainyard.cli.backend import require_carried, run_all
from trainyard.cli.inputs import (
    AllowPolicyImportOption,
    FigureFormatOption,
    FiguresOption,
    JsonOption,
    PoliciesOption,
    ReportOption,
    ScenarioArgument,
    policies_for,
    read_scenario,
)
from trainyard.cli.outputs import ReportFiles, print_results

BackendOption = Annotated[
    Backend, typer.Option("--on", help="What runs it; emulator: every packet; simulator: flows, and much faster.")
]
EnforcementOption = Annotated[
    Enforcement, typer.Option(help="levels: what switches can do; ideal: the policy's own rates (simulator only).")
]
SeedOption = Annotated[int | None, typer.Option("--seed", help="Takes the place of the scenario's seed.")]


def run(
    scenario: ScenarioArgument,
    policy: PoliciesOption = None,
    on: BackendOption = Backend.EMULATOR,
    enforcement: EnforcementOption = Enforcement.LEVELS,
    as_json: JsonOption = False,
    report: ReportOption = None,
    figures: FiguresOption = None,
    figure_format: FigureFormatOption = FigureFormat.SVG,
    seed: SeedOption = None,
    allow_policy_import: AllowPolicyImportOption = False,
) -> None:
    """Run a scenario under one policy after the other and say what came of it."""
    accepted = read_scenario(scenario, allow_policy_import=allow_policy_import)
    require_carried(accepted, scenario, on, enforcement)
    if seed is not None:
        accepted = accepted.model_copy(update={"seed": seed})
    files = ReportFiles(report, figures, figure_format)
    files.prepare()
    results = []
    for result in run_all(accepted, policies_for(accepted, policy), on, enforcement):
        results.append(result)
        if as_json:
            print(json.dumps(run_object(result)), flush=True)
    if not as_json:
        print_results(results)
    files.save_runs([results])
