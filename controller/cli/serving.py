"""``trainyard controller``."""

import asyncio
import logging
from pathlib import Path
from typing import Annotated

import typer

from controller.cli.config_file import ConfigError, load_config
from controller.cli.exits import fail, refuse
from controller.store.errors import StoreError

ConfigOption = Annotated[Path, typer.Option("--config", metavar="FILE", help="YAML file of its configuration.")]


def controller(config: ConfigOption) -> None:
    """Run the controller until SIGTERM or SIGINT; rules stay on the switches."""
    try:
        accepted = load_config(config)
    except ConfigError as error:
        refuse(error.messages)
    # The daemon takes a while to import.
    from controller.daemon import serve

    logging.basicConfig(format="%(asctime)s %(levelname)s %(name)s: %(message)s")
    logging.getLogger("finsy").addFilter(_is_news)
    try:
        asyncio.run(serve(accepted))
    except (OSError, StoreError) as error:
        fail(f"the controller failed: {error}")


def _is_news(record: logging.LogRecord) -> bool:
    """Not what finsy warns of at each connection to a healthy switch without gNMI, which nothing here needs."""
    return not record.getMessage().endswith("] gNMI is not implemented")
