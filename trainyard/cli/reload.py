"""``trainyard reload``: an operator has controllers read their configuration files again."""

import typer

from topologies.printable import printable
from trainyard.cli.connecting import ControllerAccess, asks_controller
from trainyard.cli.exits import ExitStatus, tell


@asks_controller
def reload(
    controller: ControllerAccess,
) -> None:
    """Have every controller named read its configuration file again, and say what has changed.

    A file that cannot be used, or that changes what cannot change while the controller runs, changes nothing.
    """
    is_refused = False
    for address in dict.fromkeys(controller.addresses):
        with controller.connect(address) as operations:
            answer = operations.reload()
        where = f"{address}: " if len(controller.addresses) > 1 else ""
        for change in answer.changes if answer.problems else answer.changes or ("nothing has changed",):
            typer.echo(printable(where + change))
        for problem in answer.problems:  # at once, since the next controller may not answer
            is_refused = True
            tell(where + problem)
    if is_refused:
        raise typer.Exit(ExitStatus.BAD_INPUT)
