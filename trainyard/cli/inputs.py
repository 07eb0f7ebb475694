"""Arguments and options that several commands have: scenarios, policies, numbers, pages."""

from pathlib import Path
from typing import Annotated

import typer

from policies.policy_name import PolicyName
from trainyard.cli.exits import refuse
from workloads.loading import ScenarioError, load_scenario
from workloads.scenario import Scenario

ScenarioArgument = Annotated[Path, typer.Argument(metavar="SCENARIO", help="YAML file of the scenario.")]
PoliciesOption = Annotated[
    list[PolicyName] | None,
    typer.Option("--policy", help="May be repeated. Without it: the scenario's own, else crux."),
]
JsonOption = Annotated[bool, typer.Option("--json", help="One JSON object per policy and line, nothing else.")]
ReportOption = Annotated[
    Path | None, typer.Option("--report", metavar="FILE", dir_okay=False, help="Write an HTML page with pictures too.")
]

ControllerOption = Annotated[
    list[str],
    typer.Option(
        "--controller", metavar="HOST:PORT", help="Where the running controller listens. Repeated: the one that leads."
    ),
]
AnswerJsonOption = Annotated[bool, typer.Option("--json", help="JSON instead of tables.")]
DEFAULT_CONTROLLER = ["127.0.0.1:4790"]


def read_scenario(path: Path) -> Scenario:
    """The scenario of a file; ends the command with all that is wrong with it."""
    try:
        return load_scenario(path, tuple(PolicyName))
    except ScenarioError as error:
        refuse(error.messages)


def require_positive(option: str, *numbers: float) -> None:
    """End the command where a number that an option was given is not above 0, or infinite."""
    if wrong := [number for number in numbers if not 0 < number < float("inf")]:
        refuse(f"{option}: expected a number above 0, got {number}" for number in wrong)


def policies_for(scenario: Scenario, asked: list[PolicyName] | None) -> tuple[PolicyName, ...]:
    """The policies asked for, each once; else the scenario's own; else Crux."""
    if asked:
        return tuple(dict.fromkeys(asked))
    return (PolicyName(scenario.policy or PolicyName.CRUX),)
