"""``trainyard agent``."""

import typer


def agent(context: typer.Context) -> None:
    """Probe for a host, and tell the controller what its probes meet, until SIGTERM or SIGINT."""
    # gRPC takes a while to import.
    from hostlib.agent import main

    raise typer.Exit(main(context.args))
