"""``trainyard agent``."""

import typer

from hostlib.agent import main


def agent(context: typer.Context) -> None:
    """Probe for a host, and tell the controller what its probes meet, until SIGTERM or SIGINT."""
    raise typer.Exit(main(context.args))
