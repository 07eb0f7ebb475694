"""Loading of scenario files: returns a valid scenario, or reports all of its problems."""

import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import yaml
from pydantic import TypeAdapter

from topologies.problems import Location, Problem
from topologies.specification import Topology
from workloads.scenario import Scenario
from workloads.validation import find_problems

SHIPPED_SCENARIOS = Path(__file__).with_name("scenarios")
"""Folder of the scenarios that come with Trainyard."""


_TOPOLOGY: TypeAdapter[Topology] = TypeAdapter(Topology)


class ScenarioError(ValueError):
    """A scenario with problems. ``messages`` has a line for each: file, key path, and what was expected."""

    def __init__(self, messages: tuple[str, ...]) -> None:
        super().__init__("\n".join(messages))
        self.messages = messages


def load_scenario(path: Path, policies: Collection[str] | None = None) -> Scenario:
    """Load a scenario from a YAML file. Raises ScenarioError with all its problems.

    The scenario's policy must be one of ``policies``; None accepts any.
    """
    document, problems = read_document(path)
    _refuse(path, problems + find_problems(document, policies))
    return Scenario.model_validate(document)


def load_topology(path: Path) -> Topology:
    """Load the topology of a scenario file, or of a file with a ``topology:`` alone.

    A file without ``name`` and ``jobs`` counts as the latter. Raises ScenarioError with all problems.
    """
    document, problems = read_document(path)
    found = find_problems(document)
    if isinstance(document, Mapping) and not document.keys() & {"name", "jobs"}:
        # Such a file needs no name and no jobs; unknown keys are still errors.
        found = [problem for problem in found if problem.location[0] not in ("name", "jobs")]
    _refuse(path, problems + found)
    return _TOPOLOGY.validate_python(document["topology"])


def _refuse(path: Path, problems: Sequence[Problem]) -> None:
    if problems:
        raise ScenarioError(tuple(f"{path}: {problem}" for problem in problems))


def read_document(path: Path) -> tuple[Any, list[Problem]]:
    """Parse a YAML file; return its contents and its repeated keys. Raises ScenarioError where it cannot be parsed."""
    try:
        text = path.read_text(encoding="utf-8")
    except OSError as error:
        raise ScenarioError((f"{path}: cannot be read: {error.strerror}",)) from error
    except UnicodeDecodeError as error:
        raise ScenarioError((f"{path}: is not a text file",)) from error
    try:
        return _parse(text)
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark
        place = f"line {mark.line + 1}, column {mark.column + 1}: " if mark else ""
        raise ScenarioError((f"{path}: {place}{error.problem}",)) from error
    except (yaml.YAMLError, ValueError, RecursionError) as error:
        raise ScenarioError((f"{path}: invalid YAML: {' '.join(str(error).split())}",)) from error


def parse_values(text: str) -> list[Any]:
    """Parse comma-separated values, each written as in a scenario. Raises ValueError where one is invalid.

    Commas inside brackets or braces belong to a value.
    """
    try:
        values, problems = _parse(f"[{text}]")
    except (yaml.YAMLError, RecursionError) as error:
        raise ValueError(f"not YAML values: {text!r}") from error
    if problems or not isinstance(values, list):
        raise ValueError(f"not YAML values: {text!r}")
    return values


class _Loader(yaml.SafeLoader):
    """Safe YAML in which 2.6e9 is a number, as in YAML 1.2; PyYAML requires a sign in the exponent."""


_Loader.add_implicit_resolver(
    "tag:yaml.org,2002:float",
    re.compile(r"[-+]?(?:\d[\d_]*(?:\.[\d_]*)?|\.\d[\d_]*)[eE][-+]?\d+$"),
    list("-+.0123456789"),
)


def _parse(text: str) -> tuple[object, list[Problem]]:
    """Return the document and its repeated keys, of which PyYAML would silently take the last."""
    loader = _Loader(text)
    try:
        node = loader.get_single_node()
        if node is None:
            return None, []
        return loader.construct_document(node), list(_repeated_keys(node, (), set()))
    finally:
        loader.dispose()


def _repeated_keys(node: yaml.Node, location: Location, seen: set[int]) -> Iterator[Problem]:
    if id(node) in seen:
        return
    seen.add(id(node))
    if isinstance(node, yaml.SequenceNode):
        for position, item in enumerate(node.value):
            yield from _repeated_keys(item, (*location, position), seen)
    elif isinstance(node, yaml.MappingNode):
        keys: set[str] = set()
        for key, value in node.value:
            name = str(key.value)
            if name in keys:
                yield Problem((*location, name), f"expected once, repeated in line {key.start_mark.line + 1}")
            keys.add(name)
            yield from _repeated_keys(value, (*location, name), seen)
