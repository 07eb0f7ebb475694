"""``trainyard pause``, ``resume`` and ``release``: have the controller make no Plans, and take all its rules out."""

from pathlib import Path
from typing import Annotated

import typer

from controller.api.operations.sentences import pause_words
from topologies.printable import printable
from trainyard.cli.connecting import ControllerAccess, asks_controller
from trainyard.cli.exits import refuse

ReasonOption = Annotated[
    str,
    typer.Option("--reason", metavar="TEXT", help="Why, for those who look at show controller and the audit trail."),
]
OfflineOption = Annotated[
    Path | None,
    typer.Option(
        "--config", metavar="FILE", help="Release the switches of this configuration, whose controller does not run."
    ),
]


@asks_controller
def pause(
    controller: ControllerAccess,
    reason: ReasonOption = "",
) -> None:
    """Have the controller make no Plans until resume; what is in force stays, and dead links are left all the same."""
    with controller.connect() as operations:
        answer = operations.pause(reason)
    typer.echo("planning is paused" if answer.is_changed else printable(f"already {pause_words(answer.pause)}"))


@asks_controller
def resume(
    controller: ControllerAccess,
) -> None:
    """Have the controller make Plans again after pause or release."""
    with controller.connect() as operations:
        answer = operations.resume()
    typer.echo("planning goes on" if answer.is_changed else "planning was not paused")


@asks_controller
def release(
    controller: ControllerAccess,
    reason: ReasonOption = "",
    config: OfflineOption = None,
) -> None:
    """Take all rules of Trainyard out of the switches; base routing stays. A running controller pauses, too."""
    if config is not None:
        if reason:
            refuse("--reason: is for a running controller, which keeps it")
        # Configurations bring topologies, which --help does not wait for.
        from trainyard.cli.offline import release_offline

        release_offline(config)
        return
    with controller.connect() as operations:
        answer = operations.release(reason)
    typer.echo(
        "released: planning is paused, and all rules are out"
        if answer.is_changed
        else printable(f"already {pause_words(answer.pause)}")
    )
    if answer.behind:
        typer.echo(printable(f"switches that withdraw theirs later: {', '.join(answer.behind)}"))
