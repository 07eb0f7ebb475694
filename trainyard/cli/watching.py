"""``--watch``: a command shows its answer again and again until Ctrl-C.

A command that asks a controller takes ``watch: WatchOption = None`` and says how to ask::

    with connect_or_exit(controller, shown) as operations:
        show_answers(lambda: answer_of(operations.list(LIST_JOBS)), output, watch)
"""

import sys
import time
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from typing import Annotated

import typer
from rich.console import Group, RenderableType
from rich.live import Live
from rich.text import Text

from controller.api.operations.client import OperationsError
from topologies.printable import printable
from trainyard.cli.answers import Answer, OutputFormat, Writer
from trainyard.cli.exits import tell, terminable
from trainyard.cli.output import PrintableConsole

WatchOption = Annotated[
    float | None,
    typer.Option(
        "--watch",
        metavar="[SECONDS]",
        min=0.1,
        max=86_400.0,
        help="Show it again and again until Ctrl-C, every 2 s or as often as said.",
    ),
]


def show_answers(ask: Callable[[], Answer], output: OutputFormat, every_s: float | None) -> None:
    """Print an answer, and where ``every_s`` is given what is answered from then on.

    On a terminal a table is drawn anew in its place; elsewhere a line parts it from the one before. A controller that
    stops answering is told of in a line, and asked again. What the first call raises is left to the caller.
    """
    writer, console, answer = Writer(output), PrintableConsole(), ask()
    if every_s is None:
        writer.write(answer)
    elif writer.is_for_people and sys.stdout.isatty() and not console.is_dumb_terminal:
        _redraw(console, answer, ask, every_s)
    else:
        writer.write(answer)
        _print_on(writer, ask, every_s)


def _answers(ask: Callable[[], Answer], every_s: float) -> Iterator[Answer | OperationsError]:
    """Yield an answer or what went wrong every so many seconds."""
    while True:
        time.sleep(every_s)
        try:
            yield ask()
        except OperationsError as error:
            yield error


def _print_on(writer: Writer, ask: Callable[[], Answer], every_s: float) -> None:
    is_away = False
    for answer in _answers(ask, every_s):
        if isinstance(answer, OperationsError):
            if not is_away:
                tell(f"{answer}; asking again every {every_s:g} s")
            is_away = True
            continue
        if is_away:
            tell("the controller answers again")
            is_away = False
        writer.begin_block()
        writer.write(answer)


def _redraw(console: PrintableConsole, first: Answer, ask: Callable[[], Answer], every_s: float) -> None:
    """Draw the answers in the same place; the last one stays when the command ends."""
    assert first.table is not None
    table, problem = first.table(), ""
    try:
        with terminable(), Live(console=console, screen=True, auto_refresh=False) as live:
            live.update(_screen(console, table, every_s, problem), refresh=True)
            for answer in _answers(ask, every_s):
                problem = str(answer) if isinstance(answer, OperationsError) else ""
                if isinstance(answer, Answer) and answer.table is not None:
                    table = answer.table()
                live.update(_screen(console, table, every_s, problem), refresh=True)
    finally:
        console.print(table)


def _screen(console: PrintableConsole, table: RenderableType, every_s: float, problem: str) -> RenderableType:
    """Return a table under a line with the time, and with what keeps it from being the newest."""
    said = f"{datetime.now(UTC):%H:%M:%S} UTC, every {every_s:g} s"
    if problem:
        said += f"; what follows is older: {printable(problem)}"
    heading = Text(said, style="bold red" if problem else "dim", overflow="fold")
    room = console.height - len(console.render_lines(heading))
    lines = len(console.render_lines(table, pad=False))
    return Group(heading if lines <= room else heading.append(f"; {room} of {lines} lines"), table)
