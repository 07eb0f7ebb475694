"""Scenarios and policies that a command is given; bad ones end the command with status 2."""

from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING

from policies.registry import DEFAULT_POLICY, PolicyError, load_policy, policy_names
from trainyard.cli.exits import refuse
from workloads.loading import ScenarioError, load_scenario
from workloads.scenario import Scenario

if TYPE_CHECKING:
    # Policies need NumPy, which bad input and --help do not wait for.
    from policies.policy import Policy


def read_scenario(path: Path, *, allow_policy_import: bool = False) -> Scenario:
    """Return the scenario of a file, or end the command with everything that is wrong with it.

    The scenario may name registered policies only, unless others may be imported.
    """
    try:
        scenario = load_scenario(path, None if allow_policy_import else policy_names())
    except ScenarioError as error:
        refuse(*error.messages)
    if allow_policy_import and scenario.policy is not None:
        load_policies([scenario.policy], f"{path}: policy")
    return scenario


def load_policies(names: Iterable[str], where: str = "--policy") -> tuple["Policy", ...]:
    """Return the policies of these names and import strings, each once, or end the command.

    Args:
        names: Names of registered policies, or ``module:attribute``.
        where: Begins the messages about policies that cannot be loaded.
    """
    found, problems = [], []
    for name in dict.fromkeys(names):
        try:
            found.append(load_policy(name))
        except PolicyError as error:
            problems.append(f"{where}: {error}")
    if problems:
        refuse(*problems)
    return tuple(found)


def policies_for(scenario: Scenario, names: Iterable[str] | None) -> tuple["Policy", ...]:
    """Return the policies of ``--policy``, each once; else the scenario's own; else Crux."""
    return load_policies(names or (scenario.policy or DEFAULT_POLICY,))
