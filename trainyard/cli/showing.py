"""``trainyard show``."""

import json
from typing import Annotated

import typer
from rich.console import Console

from trainyard.cli.inputs import DEFAULT_CONTROLLER, AnswerJsonOption, ControllerOption
from trainyard.cli.shown import Shown

ShownArgument = Annotated[Shown, typer.Argument(metavar="WHAT", help=", ".join(Shown) + ".", show_choices=False)]


def show(
    what: ShownArgument, controller: ControllerOption = DEFAULT_CONTROLLER, as_json: AnswerJsonOption = False
) -> None:
    """Show what a running controller knows and has decided."""
    # gRPC takes a while to import.
    from trainyard.cli.asking import asked, message_object
    from trainyard.cli.views import VIEWS

    view = VIEWS[what]
    with asked(controller) as operations:
        states = operations.list(view.listing)
    if as_json:
        print(json.dumps({what: [message_object(state) for state in states]}))
    else:
        Console().print(view.table(states))
