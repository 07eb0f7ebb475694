"""What can run a scenario, behind one function."""

import asyncio
from enum import StrEnum
from typing import TYPE_CHECKING

from experiments.scenarios.carried import as_carried, why_not_told
from experiments.scenarios.results import RunResult
from policies.enforcement import Enforcement
from policies.policy_name import PolicyName
from workloads.scenario import Scenario

if TYPE_CHECKING:
    from experiments.scenarios.stage import Progress


class Backend(StrEnum):
    """What can run a scenario."""

    EMULATOR = "emulator"
    SIMULATOR = "simulator"


class RunError(Exception):
    """A run that has failed; the message says why."""


def why_not_carried(scenario: Scenario, backend: Backend, enforcement: Enforcement) -> str | None:
    """What of a sound scenario, or of what is asked of it, the backend cannot run; None where it can."""
    match backend:
        case Backend.SIMULATOR:
            if not scenario.reads_ports:
                return "reads_ports: only the emulator has the probes that tell instead; expected --on emulator"
            return why_not_told(scenario)
        case Backend.EMULATOR:
            if enforcement is Enforcement.IDEAL:
                return "--enforcement ideal: only the simulator sets rates; expected --on simulator"
            try:
                as_carried(scenario.topology.build())
            except ValueError as error:
                return f"topology.pcie.nics_per_switch: {error}"
            return None


def run_on(
    backend: Backend,
    scenario: Scenario,
    policy: PolicyName,
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


def _emulate(scenario: Scenario, policy: PolicyName, on_progress: "Progress") -> RunResult:
    from experiments.scenarios.controller_process import ControllerProcessError
    from experiments.scenarios.emulated import run_on_emulator
    from hostlib.errors import ControllerError

    try:
        return asyncio.run(run_on_emulator(scenario, policy, on_progress=on_progress))
    except (ControllerError, ControllerProcessError, OSError, RuntimeError, ValueError) as error:
        raise RunError(str(error)) from error


def _simulate(scenario: Scenario, policy: PolicyName, enforcement: Enforcement, on_progress: "Progress") -> RunResult:
    from controller.registry.registration import RegistrationError
    from experiments.scenarios.simulated import run_on_simulator

    try:
        return run_on_simulator(scenario, policy, enforcement, on_progress=on_progress)
    except (RegistrationError, RuntimeError, ValueError) as error:
        raise RunError(str(error)) from error
