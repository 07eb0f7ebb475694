"""``trainyard controller``."""

from pathlib import Path
from typing import Annotated

import typer

from controller.config import ConfigError, load_config
from controller.errors import StoreError
from trainyard.cli.exits import fail, refuse
from trainyard.cli.inputs import load_policies

ConfigOption = Annotated[Path, typer.Option("--config", metavar="FILE", help="YAML file of its configuration.")]


def controller(config: ConfigOption) -> None:
    """Run the controller until SIGTERM or SIGINT; rules stay on the switches."""
    try:
        accepted = load_config(config)
    except ConfigError as error:
        refuse(error.messages)
    load_policies([accepted.policy], f"{config}: policy")
    # The daemon takes a while to import.
    from controller.process.daemon import run

    try:
        run(accepted)
    except (OSError, StoreError) as error:
        fail(f"the controller failed: {error}")
