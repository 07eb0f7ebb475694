"""The grid of a sweep: every scenario under every combination of settings, policies and seeds."""

import hashlib
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from experiments.scenarios.backend import Backend
from experiments.scenarios.compatibility import unsupported_on
from experiments.sweeps.axes import Settings, described, with_settings
from experiments.sweeps.case import Case, versions
from experiments.sweeps.result_line import Asked
from policies.enforcement import Enforcement
from policies.registry import DEFAULT_POLICY, policy_names
from workloads.loading import ScenarioError, load_scenario, read_document
from workloads.scenario import Scenario
from workloads.validation import find_problems


@dataclass(frozen=True, slots=True)
class ScenarioFile:
    """A scenario's file as it was read: its name, its SHA-256 and its document."""

    path: Path
    name: str
    policy: str
    sha256: str
    document: Any

    @classmethod
    def read(cls, path: Path, policies: Collection[str] | None) -> "ScenarioFile":
        """Raises ScenarioError with all that is wrong with it; its policy must be one of these, None takes any."""
        scenario = load_scenario(path, policies)
        document, _ = read_document(path)
        policy = scenario.policy or DEFAULT_POLICY
        return cls(path, scenario.name, policy, hashlib.sha256(path.read_bytes()).hexdigest(), document)


def read_files(paths: Iterable[Path], *, allow_policy_import: bool = False) -> list[ScenarioFile]:
    """Files whose scenarios have names of their own; they may name policies to import where that is allowed.

    Raises ScenarioError with all that is wrong with all of them.
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


def cases(
    files: Iterable[ScenarioFile],
    settings: Iterable[Settings],
    policies: Sequence[str],
    seeds: Iterable[int],
    backend: Backend,
    enforcement: Enforcement,
) -> list[Case]:
    """All runs, the seeds slowest, so that an interrupted sweep has some of every cell.

    Without ``policies`` a scenario runs under its own, else Crux. Raises ScenarioError, with the file and the settings,
    for what is no sound scenario or nothing that the backend can run.
    """
    cells = list(_cells(files, list(settings), backend, enforcement))
    return [
        Case(
            Asked(
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
        for file, setting, scenario in cells
        for policy in policies or (file.policy,)
    ]


def _cells(
    files: Iterable[ScenarioFile], settings: Sequence[Settings], backend: Backend, enforcement: Enforcement
) -> Iterator[tuple[ScenarioFile, Settings, Scenario]]:
    messages: list[str] = []
    for file in files:
        for setting in settings:
            where = f"{file.path} with {described(setting)}" if setting else str(file.path)
            try:
                document = with_settings(file.document, setting)
            except ValueError as error:
                messages.append(f"{where}: {error}")
                continue
            if problems := find_problems(document):
                messages += (f"{where}: {problem}" for problem in problems)
                continue
            scenario = Scenario.model_validate(document)
            if problem := unsupported_on(scenario, backend, enforcement):
                messages.append(f"{where}: {problem}")
            yield file, setting, scenario
    if messages:
        raise ScenarioError(tuple(messages))
