"""Scenarios and policies that a command is given; bad ones end the command with status 2."""

from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING

from policies.registry import DEFAULT_POLICY, PolicyError, load_policy, policy_names
from topologies.documents import Document, DocumentError
from topologies.specification import Topology
from trainyard.cli.exits import refuse
from workloads.described.catalogue import load_model
from workloads.described.description import ModelDescription
from workloads.loading import ScenarioError, load_topology, read_scenario_document, scenario_of
from workloads.scenario import Scenario

ALL = "all"
"""Names all registered policies, where an option names policies."""

if TYPE_CHECKING:
    # Policies need NumPy, which bad input and --help do not wait for.
    from policies.policy import Policy


def read_scenario(path: Path, *, allow_policy_import: bool = False) -> Scenario:
    """Return the scenario of a file, or end the command with everything that is wrong with it.

    The scenario may name registered policies only, unless others may be imported.
    """
    return read_hashed_scenario(path, allow_policy_import=allow_policy_import)[0]


def read_hashed_scenario(path: Path, *, allow_policy_import: bool = False) -> tuple[Scenario, str]:
    """Return the scenario of a file as ``read_scenario`` does, and the SHA-256 of the file."""
    try:
        document = read_scenario_document(path)
        scenario = scenario_of(document, None if allow_policy_import else policy_names())
    except ScenarioError as error:
        refuse(*error.messages)
    if allow_policy_import and scenario.policy is not None:
        load_policies([scenario.policy], f"{path}: policy")
    return scenario, document.sha256


def read_yaml(path: Path) -> Document:
    """Return a YAML file, or end the command where it cannot be read."""
    try:
        return read_scenario_document(path)
    except ScenarioError as error:
        refuse(*error.messages)


def read_topology(path: Path) -> Topology:
    """Return the topology of a scenario or of a fabric file, or end the command with everything that is wrong."""
    try:
        return load_topology(path)
    except ScenarioError as error:
        refuse(*error.messages)


def read_model(path: Path) -> ModelDescription:
    """Return the model of a file, or end the command with everything that is wrong with it."""
    try:
        return load_model(path)
    except DocumentError as error:
        refuse(*error.messages)


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


def with_all(names: Iterable[str]) -> tuple[str, ...]:
    """Return names of policies, each once, with those of all registered ones in the place of ``all``."""
    return tuple(dict.fromkeys(each for name in names for each in (policy_names() if name == ALL else (name,))))


def policies_for(scenario: Scenario, names: Iterable[str] | None) -> tuple["Policy", ...]:
    """Return the policies of ``--policy``, each once; else the scenario's own; else Crux."""
    return load_policies(with_all(names) if names else (scenario.policy or DEFAULT_POLICY,))
