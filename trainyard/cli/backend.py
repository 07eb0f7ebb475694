"""What runs a scenario, one policy after the other, each with its progress on the terminal."""

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from experiments.scenarios.backend import Backend, RunError, run_on, unsupported_on
from experiments.scenarios.results import RunResult
from policies.enforcement import Enforcement
from policies.registry import as_policy
from trainyard.cli.exits import fail, refuse
from trainyard.progress import progress
from workloads.scenario import Scenario

if TYPE_CHECKING:
    from policies.policy import Policy


def require_carried(scenario: Scenario, path: Path, backend: Backend, enforcement: Enforcement) -> None:
    """End the command where a sound scenario, or what is asked of it, is nothing that the backend can run."""
    if (problem := unsupported_on(scenario, backend, enforcement)) is not None:
        refuse((f"{path}: {problem}",))


def run_all(
    scenario: Scenario,
    policies: Sequence["Policy | str"],
    backend: Backend,
    enforcement: Enforcement = Enforcement.LEVELS,
    aside: str = "",
) -> Iterator[RunResult]:
    """The result of every policy as soon as there is one; ends the command where a run fails.

    ``aside`` is what people are to read of a run besides its scenario and policy.
    """
    for policy in map(as_policy, policies):
        what = f"{scenario.name} under {policy.name}{aside}"
        with progress(what) as on_progress:
            try:
                result = run_on(backend, scenario, policy, enforcement, on_progress=on_progress)
            except RunError as error:
                fail(f"{what}: the run failed: {error}")
        yield result
