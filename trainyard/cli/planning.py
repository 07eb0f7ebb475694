"""``trainyard plan``."""

import json
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from trainyard.cli.exits import refuse
from trainyard.cli.inputs import (
    AllowPolicyImportOption,
    JsonOption,
    PoliciesOption,
    ScenarioArgument,
    policies_for,
    read_scenario,
)

DifferenceOption = Annotated[
    Path | None,
    typer.Option(
        "--diff",
        metavar="BEFORE",
        help="Scenario whose decision is in force: show what the new one changes of it, before anything is written.",
    ),
]


def plan(
    scenario: ScenarioArgument,
    policy: PoliciesOption = None,
    diff: DifferenceOption = None,
    as_json: JsonOption = False,
    allow_policy_import: AllowPolicyImportOption = False,
) -> None:
    """Show the decision alone, once all jobs have arrived: nothing is started."""
    accepted = read_scenario(scenario, allow_policy_import=allow_policy_import)
    in_force = None if diff is None else read_scenario(diff, allow_policy_import=allow_policy_import)
    # What decides takes a while to import; check, --help and bad input need none of it.
    from controller.registry.errors import RegistrationError
    from trainyard.cli.difference import difference_object, difference_view
    from trainyard.cli.tables import plan_flows, plan_jobs, plan_reasons
    from trainyard.plans import PlanResult, plan_scenario

    fabric = accepted.topology.build()
    if in_force is not None and in_force.topology.build() != fabric:
        refuse((f"{diff}: topology: expected the one of {scenario}, so that paths can be compared",))
    console = Console()
    for decides in policies_for(accepted, policy):
        try:
            before = None if in_force is None else plan_scenario(in_force, fabric, decides).plan
            decision = plan_scenario(accepted, fabric, decides, before)
            result = PlanResult.of(accepted.name, decision, fabric)
        except (RegistrationError, ValueError) as error:
            refuse((f"{scenario}: under {decides.name}: {error}",))
        if as_json:
            told = result.to_dict()
            if before is not None:
                told["difference"] = difference_object(before, decision.plan, fabric)
            print(json.dumps(told))
            continue
        console.print(plan_jobs(decision), plan_reasons(decision), sep="\n")
        if before is None:
            console.print(plan_flows(result))
        else:
            console.print(difference_view(before, decision.plan, fabric))
