"""``trainyard explain``."""

import json
from typing import Annotated

import typer
from rich.console import Console

from trainyard.cli.inputs import DEFAULT_CONTROLLER, AnswerJsonOption, ControllerOption

NameArgument = Annotated[str, typer.Argument(metavar="JOB|JOB/GROUP/FLOW", help="A job, or one of its flows.")]


def explain(
    name: NameArgument, controller: ControllerOption = DEFAULT_CONTROLLER, as_json: AnswerJsonOption = False
) -> None:
    """Say why a running controller gave a job or a flow what it has."""
    # gRPC takes a while to import.
    from trainyard.cli.asking import asked, message_object
    from trainyard.cli.reasons import sentences

    with asked(controller) as operations:
        explanation = operations.explain(name)
    if as_json:
        print(json.dumps(message_object(explanation)))
        return
    console = Console()
    for line in sentences(explanation):
        console.print(line, markup=False, highlight=False, soft_wrap=True)
