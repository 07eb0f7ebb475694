"""What runs a scenario, one policy after the other, each with its progress on the terminal."""

import asyncio
from collections.abc import Iterator, Sequence
from enum import StrEnum
from pathlib import Path

from controller.cli.exits import fail, refuse
from controller.cli.progress import progress
from controller.policy.policy_name import PolicyName
from controller.run.carried import as_carried, require_carried_events
from controller.run.results import RunResult
from workloads.scenario import Scenario


class Backend(StrEnum):
    """What can run a scenario."""

    EMULATOR = "emulator"


def require_carried(scenario: Scenario, path: Path, backend: Backend) -> None:
    """End the command where a sound scenario has what the backend cannot run."""
    match backend:
        case Backend.EMULATOR:
            try:
                as_carried(scenario.topology.build())
            except ValueError as error:
                refuse((f"{path}: topology.pcie.nics_per_switch: {error}",))
            try:
                require_carried_events(scenario.events)
            except ValueError as error:
                refuse((f"{path}: {error}",))


def run_all(scenario: Scenario, policies: Sequence[PolicyName], backend: Backend) -> Iterator[RunResult]:
    """The result of every policy as soon as there is one; ends the command where a run fails."""
    for policy in policies:
        with progress(f"{scenario.name} under {policy}") as on_progress:
            # Only now, because the emulator takes a while to import.
            match backend:
                case Backend.EMULATOR:
                    from controller.run.controller_process import ControllerProcessError
                    from controller.run.emulated import run_on_emulator
                    from hostlib.errors import ControllerError

            try:
                result = asyncio.run(run_on_emulator(scenario, policy, on_progress=on_progress))
            except (ControllerError, ControllerProcessError, OSError, RuntimeError, ValueError) as error:
                fail(f"{scenario.name} under {policy}: the run failed: {error}")
        yield result
