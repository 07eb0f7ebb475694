"""Arguments and options that several commands have: scenarios, policies, numbers, pages."""

from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from experiments.report.style import FigureFormat
from policies.registry import DEFAULT_POLICY, PolicyError, load_policy, policy_names
from trainyard.cli.exits import refuse
from workloads.loading import ScenarioError, load_scenario
from workloads.scenario import Scenario

if TYPE_CHECKING:
    # Policies bring NumPy and SciPy, which bad input and --help need not wait for.
    from policies.policy import Policy

ScenarioArgument = Annotated[Path, typer.Argument(metavar="SCENARIO", help="YAML file of the scenario.")]
PoliciesOption = Annotated[
    list[str] | None,
    typer.Option(
        "--policy",
        metavar="POLICY",
        help="A name (see trainyard policies), or module:attribute. May be repeated. Without it: the scenario's own, "
        "else crux.",
    ),
]
AllowPolicyImportOption = Annotated[
    bool,
    typer.Option("--allow-policy-import", help="Let files name policies as module:attribute too: their code is run."),
]
JsonOption = Annotated[bool, typer.Option("--json", help="One JSON object per policy and line, nothing else.")]
ReportOption = Annotated[
    Path | None, typer.Option("--report", metavar="FILE", dir_okay=False, help="Write an HTML page with pictures too.")
]

FiguresOption = Annotated[
    Path | None,
    typer.Option(
        "--figures", metavar="DIR", file_okay=False, help="Write every figure of the report, and its data as CSV."
    ),
]
FigureFormatOption = Annotated[FigureFormat, typer.Option("--figure-format", help="File format of --figures.")]

ControllerOption = Annotated[
    list[str],
    typer.Option(
        "--controller", metavar="HOST:PORT", help="Where the running controller listens. Repeated: the one that leads."
    ),
]
AnswerJsonOption = Annotated[bool, typer.Option("--json", help="JSON instead of tables.")]
DEFAULT_CONTROLLER = ["127.0.0.1:4790"]


def read_scenario(path: Path, *, allow_policy_import: bool = False) -> Scenario:
    """The scenario of a file; ends the command with all that is wrong with it.

    It may name a registered policy only, unless others may be imported.
    """
    try:
        scenario = load_scenario(path, None if allow_policy_import else policy_names())
    except ScenarioError as error:
        refuse(error.messages)
    if allow_policy_import and scenario.policy is not None:
        load_policies([scenario.policy], f"{path}: policy")
    return scenario


def require_positive(option: str, *numbers: float) -> None:
    """End the command where a number that an option was given is not above 0, or infinite."""
    if wrong := [number for number in numbers if not 0 < number < float("inf")]:
        refuse(f"{option}: expected a number above 0, got {number}" for number in wrong)


def load_policies(names: Iterable[str], where: str = "--policy") -> tuple["Policy", ...]:
    """The policies of these names and import strings, each once; ends the command where one cannot be loaded."""
    found, problems = [], []
    for name in dict.fromkeys(names):
        try:
            found.append(load_policy(name))
        except PolicyError as error:
            problems.append(f"{where}: {error}")
    if problems:
        refuse(problems)
    return tuple(found)


def checked_policies(names: Iterable[str]) -> tuple[str, ...]:
    """The same names and import strings, each once; ends the command where one cannot be loaded."""
    names = tuple(dict.fromkeys(names))
    load_policies(names)
    return names


def policies_for(scenario: Scenario, asked: Iterable[str] | None) -> tuple["Policy", ...]:
    """The policies asked for, each once; else that of a scenario that ``read_scenario`` has read; else Crux."""
    return load_policies(asked or (scenario.policy or DEFAULT_POLICY,))
