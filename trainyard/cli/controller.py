"""``trainyard controller`` and ``trainyard agent``: the controller's process, and the one on every host."""

from pathlib import Path
from typing import Annotated

import typer

from controller.config import ConfigError, ConfigFile
from controller.errors import DaemonError
from topologies.logs import LogFormat, LogLevel
from trainyard.cli.exits import fail, refuse
from trainyard.cli.inputs import load_policies

ConfigOption = Annotated[Path, typer.Option("--config", metavar="FILE", help="Configuration file (YAML).")]


LogLevelOption = Annotated[
    LogLevel | None, typer.Option("--log-level", help="The least level that is logged, in place of log.level.")
]
LogFormatOption = Annotated[
    LogFormat | None, typer.Option("--log-format", help="How records are written, in place of log.format.")
]


def controller(config: ConfigOption, log_level: LogLevelOption = None, log_format: LogFormatOption = None) -> None:
    """Run the controller until SIGTERM or SIGINT; the rules stay on the switches.

    On SIGHUP it reads its file again, as for trainyard reload.
    """
    file = ConfigFile(config, log_level, log_format)
    try:
        accepted = file.read()
    except ConfigError as error:
        refuse(*error.messages)
    load_policies([accepted.policy], f"{config}: policy")
    # The daemon brings gRPC, finsy and SciPy, which --help and bad configurations do not wait for.
    from controller.process.daemon import run

    try:
        run(accepted, file)
    except (OSError, DaemonError) as error:
        fail(f"the controller failed: {error}")


def agent(context: typer.Context) -> None:
    """Run the agent of a host, which probes paths and reports to the controller, until SIGTERM or SIGINT."""
    # The agent brings gRPC, which the controller's --help does not wait for.
    from hostlib.agent import main

    raise typer.Exit(main(context.args))
