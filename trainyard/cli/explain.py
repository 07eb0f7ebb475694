"""``trainyard explain``: a controller's reasons for what it gave a job or a flow, in sentences."""

from typing import Annotated

import typer
from rich.text import Text

from controller.api.operations.sentences import sentences
from trainyard.cli.answers import Answer, OutputFormat, OutputOption
from trainyard.cli.connecting import ControllerAccess, asks_controller
from trainyard.cli.exits import refuse
from trainyard.cli.watching import WatchOption, show_answers
from trainyard.cli.wire_answers import message_object

NameArgument = Annotated[str, typer.Argument(metavar="JOB|JOB/GROUP/FLOW", help="A job, or one of its flows.")]


@asks_controller
def explain(
    controller: ControllerAccess,
    name: NameArgument,
    output: OutputOption = OutputFormat.TABLE,
    watch: WatchOption = None,
) -> None:
    """Explain why a running controller gave a job its level, or a flow its path."""
    if output is OutputFormat.CSV:
        refuse("--output: expected table, json or yaml, as an explanation is no list, got csv")
    with controller.connect() as operations:

        def ask() -> Answer:
            explanation = operations.explain(name)
            return Answer(message_object(explanation), (), lambda: Text("\n".join(sentences(explanation))))

        show_answers(ask, output, watch)
