"""Loading of scenario files: returns a valid scenario, or reports all of its problems."""

from collections.abc import Collection, Mapping, Sequence
from pathlib import Path

from pydantic import TypeAdapter

from topologies.documents import Document, DocumentError, read_configuration
from topologies.problems import Problem
from topologies.specification import Topology
from workloads.model_files import with_model_files
from workloads.scenario import Scenario
from workloads.trace_folders import with_trace_folders
from workloads.validation import find_problems

SHIPPED_SCENARIOS = Path(__file__).with_name("scenarios")
"""Folder of the scenarios that come with Trainyard."""


_TOPOLOGY: TypeAdapter[Topology] = TypeAdapter(Topology)


class ScenarioError(DocumentError):
    """A scenario with problems. ``messages`` has a line for each: file, key path, and what was expected."""


def load_scenario(path: Path, policies: Collection[str] | None = None) -> Scenario:
    """Load a scenario from a YAML file. Raises ScenarioError with all its problems.

    The scenario's policy must be one of ``policies``; None accepts any.
    """
    return scenario_of(read_scenario_document(path), policies)


def scenario_of(document: Document, policies: Collection[str] | None = None) -> Scenario:
    """Return the scenario of a document. Raises ScenarioError with all its problems, as ``load_scenario`` does."""
    _refuse(document, (*document.problems, *find_problems(document.contents, policies)))
    return Scenario.model_validate(document.contents)


def read_scenario_document(path: Path) -> Document:
    """Read a YAML file, with the files of a fabric, of models and of traces that it names.

    Raises ScenarioError where one cannot be used.
    """
    try:
        return with_trace_folders(with_model_files(read_configuration(path)))
    except DocumentError as error:
        raise ScenarioError(error.messages) from error


def load_topology(path: Path) -> Topology:
    """Load the topology of a scenario file, or of a file with a ``topology:`` alone.

    A file without ``name`` and ``jobs`` counts as the latter. Raises ScenarioError with all problems.
    """
    document = read_scenario_document(path)
    contents = document.contents
    found = find_problems(contents)
    if isinstance(contents, Mapping) and not contents.keys() & {"name", "jobs"}:
        # Such a file needs no name and no jobs; unknown keys are still errors.
        found = [problem for problem in found if problem.location[0] not in ("name", "jobs")]
        if "topology" not in contents and "kind" in contents:
            found = [Problem(("topology",), "missing; kind and the other keys of a cluster belong below it")]
    _refuse(document, (*document.problems, *found))
    return _TOPOLOGY.validate_python(contents["topology"])


def _refuse(document: Document, problems: Sequence[Problem]) -> None:
    if problems:
        raise ScenarioError(document.messages(problems))
