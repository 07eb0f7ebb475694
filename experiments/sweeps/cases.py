"""The cases of a sweep: what to run, how one is run in any process, and the line that records its outcome."""

import json
import platform
from dataclasses import dataclass
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from typing import Any, Self

from pydantic import BaseModel, ConfigDict, model_validator

from experiments.scenarios.backend import Backend, RunError, run_on
from experiments.scenarios.results import run_object
from experiments.sweeps.processes import Failure
from policies.enforcement import Enforcement
from policies.registry import PolicyError, load_policy
from workloads.scenario import Scenario

_PACKAGES = ("trainyard", "numpy", "numba")
_NOT_IDENTIFYING = {"file", "versions", "error", "result"}


class CaseDescription(BaseModel):
    """Everything that the result of a case depends on.

    ``sha256`` is the hash of the scenario's ``file``, ``settings`` replace values of keys in it, and ``versions`` are
    those of the programs that compute the result.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    scenario: str
    file: str
    sha256: str
    policy: str
    seed: int
    settings: dict[str, Any]
    backend: Backend
    enforcement: Enforcement
    versions: dict[str, str]

    @property
    def key(self) -> str:
        """Identifies the case within a sweep, wherever its file lies and whatever the versions."""
        return json.dumps(self.model_dump(mode="json", exclude=_NOT_IDENTIFYING), sort_keys=True)


class CaseResult(BaseModel):
    """What ``trainyard run -o json`` prints of a run; summaries use the fields named here."""

    model_config = ConfigDict(frozen=True, extra="allow")

    gpu_utilisation: float
    ideal_gpu_utilisation: float
    fluid_bound_gpu_utilisation: float
    starved_jobs: int
    worst_speed: float | None

    @property
    def limit(self) -> float:
        """The smaller of the ideal and the fluid bound."""
        return min(self.ideal_gpu_utilisation, self.fluid_bound_gpu_utilisation)


class ResultLine(CaseDescription):
    """A finished case, as the output file has it: its ``result``, or the ``error`` that ended it."""

    error: str | None = None
    result: CaseResult | None = None

    @model_validator(mode="after")
    def _has_one_outcome(self) -> Self:
        if (self.error is None) == (self.result is None):
            raise ValueError("expected either an error or a result")
        return self


@dataclass(frozen=True, slots=True)
class Case:
    """One run of a sweep: its description, and the scenario with the settings and the seed applied."""

    description: CaseDescription
    scenario: Scenario

    def succeeded(self, result: CaseResult) -> ResultLine:
        """Return the line of a run that succeeded."""
        return ResultLine(**self.description.model_dump(), result=result)

    def failed(self, error: str) -> ResultLine:
        """Return the line of a run that failed."""
        return ResultLine(**self.description.model_dump(), error=error)


def run_case(case: Case) -> CaseResult | Failure:
    """Run a case in this process; it fails where this process has other versions than the description names."""
    description = case.description
    if others := [f"{name} {here}" for name, here in versions().items() if here != description.versions.get(name)]:
        return Failure(f"{platform.node()} has other versions: {', '.join(others)}")
    try:
        policy = load_policy(description.policy)
        result = run_on(
            description.backend, case.scenario, policy, description.enforcement, on_progress=lambda *_: None
        )
    except (PolicyError, RunError) as error:
        return Failure(str(error))
    return CaseResult.model_validate(run_object(result))


@cache
def versions() -> dict[str, str]:
    """Return the versions that results depend on; a package that is not installed has none."""
    found = {"python": platform.python_version()}
    for package in _PACKAGES:
        try:
            found[package] = version(package)
        except PackageNotFoundError:
            found[package] = "not installed"
    return found
