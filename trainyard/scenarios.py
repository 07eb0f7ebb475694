"""Scenarios from files, mappings or typed objects, checked as a whole."""

from collections.abc import Mapping
from os import PathLike
from pathlib import Path
from typing import Any

from policies.registry import policy_names
from workloads import loading
from workloads.loading import ScenarioError
from workloads.scenario import Scenario
from workloads.validation import find_problems

ScenarioLike = Scenario | Mapping[str, Any] | str | PathLike[str]
"""A scenario, the mapping that its file would hold, or the path of its file."""


def load_scenario(path: str | PathLike[str]) -> Scenario:
    """Return the scenario of a YAML file.

    Raises:
        ScenarioError: The file cannot be read, or something is wrong with it; one message per problem, with its place.
    """
    return loading.load_scenario(Path(path), policy_names())


def build_scenario(source: ScenarioLike) -> Scenario:
    """Return a scenario that can be planned and run.

    A typed scenario is checked across its parts, as the file that says the same would be::

        scenario = ty.build_scenario(
            ty.Scenario(
                name="two-jobs",
                topology=ty.StarSpecification(kind="star", hosts=2, host_link_gbps=100),
                jobs=(job,),
            )
        )

    Raises:
        ScenarioError: Something is wrong with it; the error has one message per problem, with its place.
    """
    if isinstance(source, str | PathLike):
        return load_scenario(source)
    document = document_of(source) if isinstance(source, Scenario) else source
    if problems := find_problems(document, policy_names()):
        raise ScenarioError(tuple(problem.text_in(document) for problem in problems))
    return source if isinstance(source, Scenario) else Scenario.model_validate(document)


def document_of(scenario: Scenario) -> dict[str, Any]:
    """Return the mapping that the file of a typed scenario would hold."""
    return scenario.model_dump(mode="json", exclude_unset=True, exclude_none=True)
