"""The grid of a sweep: every scenario under every combination of settings, policies and seeds."""

import copy
import json
import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from pathlib import Path
from typing import Any, Self

from experiments.scenarios.backend import Backend, unsupported_on
from experiments.sweeps.cases import Case, CaseDescription, versions
from policies.enforcement import Enforcement
from policies.registry import DEFAULT_POLICY, policy_names
from topologies.documents import parse_values
from workloads.loading import ScenarioError, read_scenario_document, scenario_of
from workloads.scenario import Scenario
from workloads.validation import find_problems

Settings = Mapping[str, Any]
"""The values that one run sets, by scenario key."""

_KEY = re.compile(r"[^\s.\[\]=]+(?:\[\d+\])*(?:\.[^\s.\[\]=]+(?:\[\d+\])*)*")
_STEP = re.compile(r"\[(\d+)\]|[^.\[\]]+")
_OPTIONS = {"policy": "--policy", "seed": "--seeds"}


@dataclass(frozen=True, slots=True)
class Axis:
    """A scenario key, written as in a scenario's errors (``jobs[0].duration_s``), and the values it takes.

    Raises:
        ValueError: The key has another form or is an argument of sweeps, there is no value, or one stands twice.
    """

    key: str
    values: tuple[Any, ...]

    def __post_init__(self) -> None:
        if not _KEY.fullmatch(self.key):
            raise ValueError(f"expected a key of a scenario, got {self.key!r}")
        if self.key in _OPTIONS:
            raise ValueError(f"{self.key}: expected {_OPTIONS[self.key]} instead")
        if not self.values:
            raise ValueError(f"{self.key}: expected at least one value")
        written = [json.dumps(value, sort_keys=True, default=str) for value in self.values]
        if repeated := next((value for value in written if written.count(value) > 1), None):
            raise ValueError(f"{self.key}: expected every value once, got {repeated} twice")

    @classmethod
    def parse(cls, text: str) -> Self:
        """Parse ``KEY=VALUE,VALUE,…``, with values in YAML.

        Raises:
            ValueError: The text has another form, or a value stands twice.
        """
        key, equals, values = text.partition("=")
        if not equals or not _KEY.fullmatch(key):
            raise ValueError(f"expected KEY=VALUE,VALUE,... with a key of a scenario, got {text!r}")
        return cls(key, tuple(parse_values(values)))


def combinations(axes: Iterable[Axis]) -> Iterator[Settings]:
    """Yield all settings of a grid; the last axis changes fastest.

    Raises:
        ValueError: Two axes have the same key.
    """
    axes = tuple(axes)
    keys = [axis.key for axis in axes]
    if repeated := next((key for key in keys if keys.count(key) > 1), None):
        raise ValueError(f"{repeated}: expected once, with all its values")
    for values in product(*(axis.values for axis in axes)):
        yield dict(zip(keys, values, strict=True))


def with_settings(document: Any, settings: Settings) -> Any:
    """Return a copy of a scenario's document with these keys set.

    It does not check whether the keys mean anything: the scenario's own validation does.

    Raises:
        ValueError: The document has no such place.
    """
    document = copy.deepcopy(document)
    for key, value in settings.items():
        *parents, last = [int(step[1]) if step[1] else step[0] for step in _STEP.finditer(key)]
        here = document
        for step in parents:
            _require_place(here, step, key)
            if isinstance(here, dict):
                here.setdefault(step, {})
            here = here[step]
        _require_place(here, last, key)
        here[last] = value
    return document


def format_settings(settings: Settings) -> str:
    """Return the settings in one line, empty where there are none."""
    return ", ".join(f"{key}={format_value(value)}" for key, value in settings.items())


def format_value(value: Any) -> str:
    """Return a value as a person would write it."""
    return value if isinstance(value, str) else json.dumps(value)


def _require_place(here: Any, step: str | int, key: str) -> None:
    if isinstance(step, int) and not (isinstance(here, list) and step < len(here)):
        raise ValueError(f"{key}: there is no [{step}]")
    if isinstance(step, str) and not isinstance(here, dict):
        raise ValueError(f"{key}: {step!r} needs a mapping around it")


@dataclass(frozen=True, slots=True)
class ScenarioFile:
    """A scenario's file: its name, its policy, its SHA-256 and its document."""

    path: Path
    name: str
    policy: str
    sha256: str
    document: Any

    @classmethod
    def read(cls, path: Path, policies: Collection[str] | None) -> "ScenarioFile":
        """Read and check a file; it must name one of ``policies``, or any where they are None.

        Raises:
            ScenarioError: The file is not a valid scenario; the error lists every problem.
        """
        document = read_scenario_document(path)
        scenario = scenario_of(document, policies)
        return cls(path, scenario.name, scenario.policy or DEFAULT_POLICY, document.sha256, document.contents)


def read_files(paths: Iterable[Path], *, allow_policy_import: bool = False) -> list[ScenarioFile]:
    """Read scenario files, each of which needs a name of its own.

    Args:
        paths: The files; one that stands twice is read once.
        allow_policy_import: Whether they may name policies by ``module:attribute``.

    Raises:
        ScenarioError: A file cannot be used; the error lists the problems of all files.
    """
    policies = None if allow_policy_import else policy_names()
    files: dict[str, ScenarioFile] = {}
    messages: list[str] = []
    for path in dict.fromkeys(paths):
        try:
            file = ScenarioFile.read(path, policies)
        except ScenarioError as error:
            messages += error.messages
            continue
        other = files.setdefault(file.name, file)
        if other is not file:
            messages.append(f"{path}: name: expected one of its own, {file.name!r} is {other.path}")
    if messages:
        raise ScenarioError(tuple(messages))
    return list(files.values())


def build_grid(
    files: Iterable[ScenarioFile],
    settings: Iterable[Settings],
    policies: Sequence[str],
    seeds: Iterable[int],
    backend: Backend,
    enforcement: Enforcement,
) -> list[Case]:
    """Return all cases; the seed changes slowest, so that an interrupted sweep has some runs of every cell.

    Without ``policies`` a scenario runs under its own policy, or else Crux.

    Raises:
        ScenarioError: A scenario is invalid with its settings, or the back end cannot run it. Every message names the
            file and the settings.
        ValueError: The back end has real hosts, there is no seed, or a seed, a policy or the name of a scenario stands
            twice.
    """
    if backend.has_real_hosts:
        raise ValueError(f"backend: expected emulator or simulator, as all runs on {backend.value} need the machine")
    files, seeds = list(files), list(seeds)
    if not seeds:
        raise ValueError("seeds: expected at least one")
    for what, values in (("scenarios", [file.name for file in files]), ("policies", policies), ("seeds", seeds)):
        if repeated := next((value for value in values if list(values).count(value) > 1), None):
            raise ValueError(f"{what}: expected each once, got {repeated!r} twice")
    scenarios = list(_checked_scenarios(files, list(settings), backend, enforcement))
    return [
        Case(
            CaseDescription(
                scenario=file.name,
                file=str(file.path),
                sha256=file.sha256,
                policy=policy,
                seed=seed,
                settings=dict(setting),
                backend=backend,
                enforcement=enforcement,
                versions=versions(),
            ),
            scenario.model_copy(update={"seed": seed}),
        )
        for seed in seeds
        for file, setting, scenario in scenarios
        for policy in policies or (file.policy,)
    ]


def _checked_scenarios(
    files: Iterable[ScenarioFile], settings: Sequence[Settings], backend: Backend, enforcement: Enforcement
) -> Iterator[tuple[ScenarioFile, Settings, Scenario]]:
    messages: list[str] = []
    for file in files:
        for setting in settings:
            where = f"{file.path} with {format_settings(setting)}" if setting else str(file.path)
            try:
                document = with_settings(file.document, setting)
            except ValueError as error:
                messages.append(f"{where}: {error}")
                continue
            if problems := find_problems(document):
                messages += (f"{where}: {problem.text_in(document)}" for problem in problems)
                continue
            scenario = Scenario.model_validate(document)
            if problem := unsupported_on(scenario, backend, enforcement):
                messages.append(f"{where}: {problem}")
            yield file, setting, scenario
    if messages:
        raise ScenarioError(tuple(messages))
