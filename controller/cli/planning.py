"""``trainyard plan``."""

import json

from rich.console import Console

from controller.cli.exits import refuse
from controller.cli.inputs import JsonOption, PoliciesOption, ScenarioArgument, policies_for, read_scenario


def plan(scenario: ScenarioArgument, policy: PoliciesOption = None, as_json: JsonOption = False) -> None:
    """Show the decision alone, once all jobs have arrived: nothing is started."""
    accepted = read_scenario(scenario)
    # What decides takes a while to import; check, --help and bad input need none of it.
    from controller.cli.decision_alone import plan_scenario
    from controller.cli.plan_form import plan_object
    from controller.cli.tables import plan_flows, plan_jobs, plan_reasons
    from controller.registration import RegistrationError

    fabric = accepted.topology.build()
    console = Console()
    for name in policies_for(accepted, policy):
        try:
            decision = plan_scenario(accepted, fabric, name)
        except (RegistrationError, ValueError) as error:
            refuse((f"{scenario}: under {name}: {error}",))
        if as_json:
            print(json.dumps(plan_object(decision, fabric)))
        else:
            console.print(plan_jobs(decision), plan_reasons(decision), plan_flows(decision, fabric), sep="\n")
