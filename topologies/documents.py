"""Reads YAML documents that somebody else may have written. Every reader of YAML in Trainyard is this one.

Accepted is what configurations need: mappings with text as keys, lists, text, numbers, true, false and null, with
aliases and merge keys. A date is text. Refused, with line and column, is what would fail, or cost much, further on:
other tags, deep nesting, aliases that multiply, and control characters. Repeated keys are problems of the document.

A configuration's ``topology`` may be the name of a fabric file, relative to the file that names it.
"""

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, NamedTuple

import yaml

from topologies.files import FileError, read_bytes, shown_path
from topologies.printable import printable
from topologies.problems import Location, Problem, as_mapping
from topologies.scalars import ScalarError, scalar_of

MOST_DEPTH = 100
"""The deepest nesting."""
MOST_VALUES = 1_000_000
"""The most values of a document, counted again at every alias."""

_PARSER = getattr(yaml, "CSafeLoader", yaml.SafeLoader)  # a PyYAML without libyaml reads the same, more slowly
_COLLECTION_TAGS = {None, "!", "tag:yaml.org,2002:map", "tag:yaml.org,2002:seq"}


class DocumentError(ValueError):
    """Documents that cannot be used; ``messages`` has a line for each problem: file, place and problem."""

    def __init__(self, messages: tuple[str, ...]) -> None:
        super().__init__("\n".join(messages))
        self.messages = messages


@dataclass(frozen=True, slots=True)
class Document:
    """A document: its file, its contents, its repeated keys, and the SHA-256 of all that was read."""

    path: Path
    contents: Any
    problems: tuple[Problem, ...]
    sha256: str
    topology_path: Path | None = None
    """The file that holds ``topology``, where the document only names it."""

    def messages(self, problems: Sequence[Problem]) -> tuple[str, ...]:
        """Return a line for each problem: the file and the place there that it is in, and the problem."""
        return tuple(f"{shown_path(self._file_of(problem))}: {problem.text_in(self.contents)}" for problem in problems)

    def _file_of(self, problem: Problem) -> Path:
        is_of_topology = problem.location[:1] == ("topology",)
        return self.path if self.topology_path is None or not is_of_topology else self.topology_path


def read_document(path: Path) -> Document:
    """Read a YAML file. Raises DocumentError where it cannot be read or parsed."""
    try:
        content = read_bytes(path)
        contents, problems = parse_document(content.decode())
    except FileError as error:
        raise DocumentError((str(error),)) from error
    except UnicodeDecodeError as error:
        raise DocumentError((f"{shown_path(path)}: is not a text file",)) from error
    except ValueError as error:
        raise DocumentError((f"{shown_path(path)}: {error}",)) from error
    return Document(path, contents, tuple(problems), hashlib.sha256(content).hexdigest())


def read_configuration(path: Path) -> Document:
    """Read a YAML file, and where its ``topology`` is text, the fabric file of this name in place of it.

    Raises:
        DocumentError: A file cannot be read or parsed, or the fabric file does not hold a ``topology`` and nothing
            else. One that names a further file is refused, so names never go in circles.
    """
    document = read_document(path)
    name = as_mapping(document.contents).get("topology")
    if not isinstance(name, str):
        return document
    fabric_path = path.parent / name
    try:
        named = read_document(fabric_path)
    except DocumentError as error:
        if isinstance(error.__cause__, FileError):
            raise DocumentError((f"{shown_path(path)}: topology: expected a mapping or a file; {error}",)) from error
        raise
    faults = list(_faults_of_fabric_file(named.contents))
    if faults:
        raise DocumentError(named.messages((*named.problems, *faults)))
    return replace(
        document,
        contents={**document.contents, "topology": named.contents["topology"]},
        problems=(*document.problems, *named.problems),
        sha256=hashlib.sha256(f"{document.sha256} {named.sha256}".encode()).hexdigest(),
        topology_path=fabric_path,
    )


def _faults_of_fabric_file(contents: object) -> Iterator[Problem]:
    if not isinstance(contents, Mapping):
        yield Problem((), "expected a mapping with the key topology")
        return
    if "topology" not in contents:
        yield Problem(("topology",), "missing; this key is required")
    elif isinstance(contents["topology"], str):
        yield Problem(("topology",), "expected the topology itself, not the name of a further file")
    for key in contents:
        if key != "topology":
            yield Problem((key,), "unknown key; expected topology alone in a file that another one names")


def parse_document(text: str) -> tuple[Any, list[Problem]]:
    """Parse a document; return its contents and its repeated keys. Raises ValueError, naming line and column."""
    try:
        loader = _PARSER(text)
        try:
            composer = _Composer(loader)
            return composer.document(), composer.problems
        finally:
            loader.dispose()
    except yaml.MarkedYAMLError as error:
        raise _refusal(error.problem_mark, f"invalid YAML: {error.problem}") from error
    except yaml.YAMLError as error:
        raise ValueError(f"invalid YAML: {printable(' '.join(str(error).split()), 200)}") from error
    except UnicodeEncodeError as error:
        raise ValueError("invalid YAML: expected text, got a lone surrogate") from error


def parse_values(text: str) -> list[Any]:
    """Parse comma-separated values, each written as in a scenario. Raises ValueError where one is invalid.

    Commas inside brackets or braces belong to a value.
    """
    try:
        values, problems = parse_document(f"[{text}]")
    except ValueError as error:
        raise ValueError(f"not YAML values: {printable(repr(text), 200)}") from error
    if problems or not isinstance(values, list):
        raise ValueError(f"not YAML values: {printable(repr(text), 200)}")
    return values


class _Value(NamedTuple):
    """A value, and how many values it consists of with all that its aliases repeat."""

    content: Any
    size: int


def _refusal(mark: Any, problem: str) -> ValueError:
    place = f"line {mark.line + 1}, column {mark.column + 1}: " if mark else ""
    return ValueError(f"{place}{printable(problem, 300)}")


def _line(event: Any) -> int:
    return int(event.start_mark.line) + 1


class _Composer:
    """Builds the values of one document from the parser's events."""

    def __init__(self, loader: Any) -> None:
        self.problems: list[Problem] = []
        self._loader = loader
        self._anchored: dict[str | None, _Value] = {}
        self._num_values = 0

    def document(self) -> Any:
        """Return the contents of the only document; None where there is none."""
        self._loader.get_event()
        if self._loader.check_event(yaml.StreamEndEvent):
            return None
        self._loader.get_event()
        content = self._value(self._loader.get_event(), (), 0).content
        self._loader.get_event()
        event = self._loader.get_event()
        if not isinstance(event, yaml.StreamEndEvent):
            raise _refusal(event.start_mark, "expected a single document, another begins here")
        return content

    def _value(self, event: Any, location: Location, depth: int) -> _Value:
        if isinstance(event, yaml.AliasEvent):
            value = self._anchored.get(event.anchor)
            if value is None:
                raise _refusal(event.start_mark, f"the alias *{event.anchor} stands for nothing that ends before it")
            self._count(value.size, event)
            return value
        if depth > MOST_DEPTH:
            raise _refusal(event.start_mark, f"expected at most {MOST_DEPTH} levels of nesting")
        self._count(1, event)
        before = self._num_values
        content = self._content(event, location, depth)
        value = _Value(content, 1 + self._num_values - before)
        if event.anchor is not None:
            self._anchored[event.anchor] = value
        return value

    def _content(self, event: Any, location: Location, depth: int) -> Any:
        if isinstance(event, yaml.ScalarEvent):
            try:
                return scalar_of(event)
            except ScalarError as error:
                raise _refusal(event.start_mark, str(error)) from error
        if event.tag not in _COLLECTION_TAGS:
            raise _refusal(event.start_mark, f"the tag {printable(event.tag, 80)} is not supported")
        if isinstance(event, yaml.SequenceStartEvent):
            return [
                self._value(item, (*location, position), depth + 1).content
                for position, item in enumerate(self._events(yaml.SequenceEndEvent))
            ]
        return self._mapping(location, depth)

    def _mapping(self, location: Location, depth: int) -> dict[str, Any]:
        found: dict[str, Any] = {}
        merged: list[Mapping[str, Any]] = []
        for event in self._events(yaml.MappingEndEvent):
            if not isinstance(event, yaml.ScalarEvent):
                raise _refusal(event.start_mark, "expected text as a key; quote it")
            self._count(1, event)
            if event.value == "<<" and event.implicit[0]:
                merged += self._merged(location, depth)
                continue
            name = self._key(event, location)
            value = self._value(self._loader.get_event(), (*location, event.value), depth + 1).content
            if name is None:
                continue
            if name in found:
                problem = f"expected once, repeated in line {_line(event)}"
                self.problems.append(Problem((*location, name), problem))
            found[name] = value
        for defaults in merged:
            for name, value in defaults.items():
                found.setdefault(name, value)
        return found

    def _key(self, event: Any, location: Location) -> str | None:
        try:
            name = scalar_of(event)
        except ScalarError as error:
            raise _refusal(event.start_mark, str(error)) from error
        if isinstance(name, str):
            return name
        self.problems.append(Problem((*location, event.value), "expected text as a key; quote it"))
        return None

    def _merged(self, location: Location, depth: int) -> Sequence[Mapping[str, Any]]:
        """Return the mappings of a merge key, those that come first in it first."""
        event = self._loader.get_event()
        content = self._value(event, (*location, "<<"), depth + 1).content
        mappings = content if isinstance(content, list) else [content]
        if not all(isinstance(each, dict) for each in mappings):
            raise _refusal(event.start_mark, "expected mappings to merge")
        return mappings

    def _events(self, end: type[yaml.Event]) -> Iterator[Any]:
        while not isinstance(event := self._loader.get_event(), end):
            yield event

    def _count(self, number: int, event: yaml.Event) -> None:
        self._num_values += number
        if self._num_values > MOST_VALUES:
            raise _refusal(event.start_mark, f"expected at most {MOST_VALUES:,} values with those of aliases")
