"""``trainyard pin`` and ``unpin``: decide the level of a job or the path of a flow by hand, for a while."""

import re
from typing import Annotated

import typer

from controller.api.operations.sentences import until_words
from topologies.printable import printable
from trainyard.cli.connecting import ControllerAccess, asks_controller
from trainyard.cli.exits import refuse

_UNITS_S = {"s": 1.0, "m": 60.0, "h": 3_600.0, "d": 86_400.0}
_DURATION = re.compile(r"(?:[0-9]{1,9}(?:\.[0-9]{1,9})?[smhd])+", re.ASCII)
_PART = re.compile(r"([0-9.]+)([smhd])", re.ASCII)

NameArgument = Annotated[
    str, typer.Argument(metavar="JOB|JOB/GROUP/FLOW", help="A job for a level, or one of its flows for a path.")
]
LevelOption = Annotated[
    int | None, typer.Option("--level", min=0, max=7, metavar="0...7", help="The level of all its flows.")
]
PathOption = Annotated[
    str | None,
    typer.Option("--path", metavar="PATH", help="The path, as show paths has it: 'h0.0>t0.1>a1.0>t1.0>h2'. Quote it."),
]
ForOption = Annotated[
    str, typer.Option("--for", metavar="TIME", help="For how long: 90s, 30m, 2h, 1d, 1h30m; 7d at most.")
]


@asks_controller
def pin(
    controller: ControllerAccess,
    name: NameArgument,
    for_: ForOption,
    level: LevelOption = None,
    path: PathOption = None,
) -> None:
    """Have a job have a level, or a flow a path, whatever the policy decides, until the time is over."""
    if (level is None) == (path is None):
        refuse("expected one of --level and --path")
    duration_s = _duration_s(for_)
    with controller.connect() as operations:
        state = operations.pin(name, duration_s, level, path)
    what = f"level {state.level}" if state.HasField("level") else state.path
    waits = f"; {state.problem}" if state.problem else ""
    typer.echo(printable(f"pinned: {state.name} to {what} until {until_words(state.left_s)}{waits}"))


@asks_controller
def unpin(
    controller: ControllerAccess,
    name: NameArgument,
) -> None:
    """Have the policy decide again what was pinned."""
    with controller.connect() as operations:
        operations.unpin(name)
    typer.echo(printable(f"no longer pinned: {name}"))


def _duration_s(text: str) -> float:
    if not _DURATION.fullmatch(text):
        refuse(f"--for {text!r}: expected a time such as 90s, 30m, 2h, 1d or 1h30m")
    return sum(float(number) * _UNITS_S[unit] for number, unit in _PART.findall(text))
