"""Reads a scenario file and accepts it as a whole, or says everything that is wrong with it."""

import re
from collections.abc import Iterator
from pathlib import Path

import yaml

from workloads.problems import Location, Problem, find_problems
from workloads.scenario import Scenario

SHIPPED_SCENARIOS = Path(__file__).with_name("scenarios")
"""Folder of the scenarios that come with Trainyard."""


class ScenarioError(ValueError):
    """A scenario that cannot be used; ``messages`` has one line per problem: file, key path, what was expected."""

    def __init__(self, messages: tuple[str, ...]) -> None:
        super().__init__("\n".join(messages))
        self.messages = messages


def load_scenario(path: Path) -> Scenario:
    """The scenario of a YAML file. Raises ScenarioError with all its problems."""
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise ScenarioError((f"{path}: cannot be read: {error}",)) from error
    try:
        document, problems = _parse(text)
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark
        place = f"line {mark.line + 1}, column {mark.column + 1}: " if mark else ""
        raise ScenarioError((f"{path}: {place}{error.problem}",)) from error
    except (yaml.YAMLError, ValueError, RecursionError) as error:
        raise ScenarioError((f"{path}: not YAML that can be read: {' '.join(str(error).split())}",)) from error
    problems += find_problems(document)
    if problems:
        raise ScenarioError(tuple(f"{path}: {problem}" for problem in problems))
    return Scenario.model_validate(document)


class _Loader(yaml.SafeLoader):
    """Safe YAML in which 2.6e9 is a number, as YAML 1.2 has it (PyYAML insists on a sign in the exponent)."""


_Loader.add_implicit_resolver(
    "tag:yaml.org,2002:float",
    re.compile(r"[-+]?(?:\d[\d_]*(?:\.[\d_]*)?|\.\d[\d_]*)[eE][-+]?\d+$"),
    list("-+.0123456789"),
)


def _parse(text: str) -> tuple[object, list[Problem]]:
    """The document, and the keys that stand twice in a mapping, of which PyYAML would silently take the last."""
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
                yield Problem((*location, name), f"expected once, there again in line {key.start_mark.line + 1}")
            keys.add(name)
            yield from _repeated_keys(value, (*location, name), seen)
