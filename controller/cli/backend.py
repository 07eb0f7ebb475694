"""What runs a scenario, one policy after the other, each with its progress on the terminal."""

import asyncio
from collections.abc import Iterator, Sequence
from enum import StrEnum
from pathlib import Path

from controller.cli.exits import fail, refuse
from controller.cli.progress import OnProgress, progress
from controller.policy.enforcement import Enforcement
from controller.policy.policy_name import PolicyName
from controller.run.carried import as_carried, require_carried_events
from controller.run.results import RunResult
from workloads.scenario import Scenario


class Backend(StrEnum):
    """What can run a scenario."""

    EMULATOR = "emulator"
    SIMULATOR = "simulator"


def require_carried(scenario: Scenario, path: Path, backend: Backend, enforcement: Enforcement) -> None:
    """End the command where a sound scenario, or what is asked of it, is nothing that the backend can run."""
    match backend:
        case Backend.SIMULATOR:
            if scenario.events:
                refuse((f"{path}: events: only the emulator runs them; expected --on emulator",))
        case Backend.EMULATOR:
            if enforcement is Enforcement.IDEAL:
                refuse(("--enforcement ideal: only the simulator sets rates; expected --on simulator",))
            try:
                as_carried(scenario.topology.build())
            except ValueError as error:
                refuse((f"{path}: topology.pcie.nics_per_switch: {error}",))
            try:
                require_carried_events(scenario.events)
            except ValueError as error:
                refuse((f"{path}: {error}",))


def run_all(
    scenario: Scenario,
    policies: Sequence[PolicyName],
    backend: Backend,
    enforcement: Enforcement = Enforcement.LEVELS,
    aside: str = "",
) -> Iterator[RunResult]:
    """The result of every policy as soon as there is one; ends the command where a run fails.

    ``aside`` is what people are to read of a run besides its scenario and policy.
    """
    for policy in policies:
        what = f"{scenario.name} under {policy}{aside}"
        with progress(what) as on_progress:
            # Only now, because engines take a while to import.
            match backend:
                case Backend.EMULATOR:
                    result = _emulate(what, scenario, policy, on_progress)
                case Backend.SIMULATOR:
                    result = _simulate(what, scenario, policy, enforcement, on_progress)
        yield result


def _emulate(what: str, scenario: Scenario, policy: PolicyName, on_progress: OnProgress) -> RunResult:
    from controller.run.controller_process import ControllerProcessError
    from controller.run.emulated import run_on_emulator
    from hostlib.errors import ControllerError

    try:
        return asyncio.run(run_on_emulator(scenario, policy, on_progress=on_progress))
    except (ControllerError, ControllerProcessError, OSError, RuntimeError, ValueError) as error:
        fail(f"{what}: the run failed: {error}")


def _simulate(
    what: str, scenario: Scenario, policy: PolicyName, enforcement: Enforcement, on_progress: OnProgress
) -> RunResult:
    from controller.registration import RegistrationError
    from controller.run.simulated import run_on_simulator

    try:
        return run_on_simulator(scenario, policy, enforcement, on_progress=on_progress)
    except (RegistrationError, RuntimeError, ValueError) as error:
        fail(f"{what}: the run failed: {error}")
