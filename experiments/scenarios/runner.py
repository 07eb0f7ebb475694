"""Runs a scenario on any back end, behind one function."""

import asyncio
from typing import TYPE_CHECKING

from experiments.scenarios.backend import Backend, RunError
from experiments.scenarios.results import RunResult
from policies.enforcement import Enforcement
from workloads.scenario import Scenario

if TYPE_CHECKING:
    from experiments.scenarios.job_driver import Progress
    from policies.policy import Policy


def run_on(
    backend: Backend,
    scenario: Scenario,
    policy: "Policy | str",
    enforcement: Enforcement = Enforcement.LEVELS,
    *,
    on_progress: "Progress",
) -> RunResult:
    """Run a scenario to its end. Raises RunError."""
    # Only now, because engines take a while to import.
    match backend:
        case Backend.EMULATOR:
            return _emulate(scenario, policy, on_progress)
        case Backend.SIMULATOR:
            return _simulate(scenario, policy, enforcement, on_progress)


def _emulate(scenario: Scenario, policy: "Policy | str", on_progress: "Progress") -> RunResult:
    from experiments.scenarios.controller_process import ControllerProcessError
    from experiments.scenarios.emulated import run_on_emulator
    from hostlib.errors import ControllerError

    try:
        return asyncio.run(run_on_emulator(scenario, policy, on_progress=on_progress))
    except (ControllerError, ControllerProcessError, OSError, RuntimeError, ValueError) as error:
        raise RunError(str(error)) from error


def _simulate(
    scenario: Scenario, policy: "Policy | str", enforcement: Enforcement, on_progress: "Progress"
) -> RunResult:
    from controller.registry.errors import RegistrationError
    from experiments.scenarios.simulated import run_on_simulator

    try:
        return run_on_simulator(scenario, policy, enforcement, on_progress=on_progress)
    except (RegistrationError, RuntimeError, ValueError) as error:
        raise RunError(str(error)) from error
