"""What ``trainyard apply`` and ``release --config`` share: a configuration, and switches without a controller."""

import asyncio
import logging
from collections.abc import Callable, Coroutine, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from controller.config import ConfigError, ControllerConfig, load_config
from controller.errors import DaemonError
from topologies.logs import log_to_stderr
from topologies.printable import printable
from trainyard.cli.exits import fail, refuse
from trainyard.cli.inputs import load_policies

if TYPE_CHECKING:
    # finsy is slow to import, which --help and bad configurations do not wait for.
    from controller.southbound.visit import Visit


def visit_switches(
    config: Path, work: Callable[[ControllerConfig], Coroutine[Any, Any, "Sequence[Visit]"]]
) -> "Sequence[Visit]":
    """Do work at the switches of a configuration, or end the command where it cannot be done."""
    try:
        accepted = load_config(config)
    except ConfigError as error:
        refuse(*error.messages)
    load_policies([accepted.policy], f"{config}: policy")
    log_to_stderr()
    logging.getLogger("finsy").setLevel(logging.CRITICAL + 1)
    try:
        return asyncio.run(work(accepted))
    except (OSError, DaemonError, ValueError) as error:
        fail(str(error))


def fail_for_problems(visits: "Sequence[Visit]") -> None:
    """End the command with status 1 where switches have not been visited, each with its reason."""
    if problems := [f"switch {each.name} at {each.address}: {each.problem}" for each in visits if each.problem]:
        fail(*problems)


def release_offline(config: Path) -> None:
    """Delete all rules and levels from the switches of a configuration."""
    from controller.process.one_shot import release_once

    visits = visit_switches(config, release_once)
    for visit in visits:
        if not visit.problem:
            entries = "1 entry" if len(visit.updates) == 1 else f"{len(visit.updates):,} entries"
            typer.echo(printable(f"released: switch {visit.name}, {entries} deleted"))
    fail_for_problems(visits)
