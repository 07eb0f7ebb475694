"""One run of a sweep, and what carries it out in whatever process."""

import platform
from dataclasses import dataclass
from functools import cache
from importlib.metadata import PackageNotFoundError, version

from experiments.scenarios.backend import RunError
from experiments.scenarios.results import run_object
from experiments.scenarios.runner import run_on
from experiments.sweeps.execution import Failure
from experiments.sweeps.result_line import Asked, Measured, ResultLine
from policies.registry import PolicyError, load_policy
from workloads.scenario import Scenario

_PACKAGES = ("trainyard", "numpy", "numba")


@dataclass(frozen=True, slots=True)
class Case:
    """What is asked for, and the scenario with its settings and seed in it."""

    asked: Asked
    scenario: Scenario

    def finished(self, measured: Measured) -> ResultLine:
        """The line of a run that has ended as it should."""
        return ResultLine(**self.asked.model_dump(), result=measured)

    def failed(self, error: str) -> ResultLine:
        """The line of a run that has not."""
        return ResultLine(**self.asked.model_dump(), error=error)


def run_case(case: Case) -> Measured | Failure:
    """Carry a case out; it fails, too, where the versions here are others than those of who asks."""
    asked = case.asked
    if others := [f"{name} {here}" for name, here in versions().items() if here != asked.versions.get(name)]:
        return Failure(f"{platform.node()} has other versions: {', '.join(others)}")
    try:
        result = run_on(
            asked.backend, case.scenario, load_policy(asked.policy), asked.enforcement, on_progress=lambda *_: None
        )
    except (PolicyError, RunError) as error:
        return Failure(str(error))
    return Measured.model_validate(run_object(result))


@cache
def versions() -> dict[str, str]:
    """What results depend on besides the scenario; a checkout on the path has no version."""
    found = {"python": platform.python_version()}
    for package in _PACKAGES:
        try:
            found[package] = version(package)
        except PackageNotFoundError:
            found[package] = "not installed"
    return found
