"""``trainyard drain`` and ``undrain``: have flows leave a switch, a cable or a host before somebody works on it."""

from enum import StrEnum
from time import monotonic, sleep
from typing import Annotated

import typer

from controller.api.operations import operations_pb2 as wire
from controller.api.operations.client import Operations
from controller.api.operations.methods import LIST_DRAINS
from topologies.printable import printable
from trainyard.cli.connecting import ControllerAccess, asks_controller
from trainyard.cli.exits import fail, refuse

_POLL_S = 0.25
_LARGEST_NUMBER = 2**32 - 1
"""The largest number that the message has room for."""


class Kind(StrEnum):
    """What can be drained."""

    SWITCH = "switch"
    LINK = "link"
    HOST = "host"


KindArgument = Annotated[Kind, typer.Argument(metavar="switch|link|host", show_choices=False)]
NamesArgument = Annotated[
    list[str],
    typer.Argument(
        metavar="NAME...",
        help="Its name. A link is NODE:PORT (a name or a number of the port), NODE NODE, or as show drained has it.",
    ),
]
ParallelOption = Annotated[
    int | None,
    typer.Option(
        "--parallel", min=0, max=_LARGEST_NUMBER, metavar="N", help="Which of several cables between two nodes."
    ),
]


@asks_controller
def drain(
    controller: ControllerAccess,
    kind: KindArgument,
    names: NamesArgument,
    parallel: ParallelOption = None,
    force: Annotated[
        bool, typer.Option("--force", help="Also where that takes the last path of hosts, whose jobs are cut off.")
    ] = False,
    wait: Annotated[bool, typer.Option("--wait/--no-wait", help="Wait until it is safe to work on it.")] = True,
    time_limit_s: Annotated[
        float, typer.Option("--time-limit-s", min=0, help="For how long to wait; it stays drained then.")
    ] = 300.0,
) -> None:
    """Move all flows off a switch, a cable or a host, and say when it is safe to work on it."""
    target = _target(kind, names, parallel)
    with controller.connect() as operations:
        answer = operations.drain(target, is_forced=force)
        title = f"{kind} {answer.name}"
        typer.echo(printable(f"{'draining' if answer.is_changed else 'already drained:'} {title}"))
        if wait:
            _wait_until_safe(operations, title, time_limit_s)


@asks_controller
def undrain(
    controller: ControllerAccess,
    kind: KindArgument,
    names: NamesArgument,
    parallel: ParallelOption = None,
) -> None:
    """Use a switch, a cable or a host again that was drained."""
    target = _target(kind, names, parallel)
    with controller.connect() as operations:
        answer = operations.undrain(target)
    typer.echo(printable(f"in use again: {kind} {answer.name}"))


def _target(kind: Kind, names: list[str], parallel: int | None) -> wire.DrainTarget:
    most = 2 if kind is Kind.LINK else 1
    if len(names) > most:
        refuse(f"{kind}: expected {'one or two names' if most == 2 else 'one name'}, got {len(names)}")
    if parallel is not None and len(names) < 2:
        refuse("--parallel: is for links that are named by two nodes")
    other = names[1] if len(names) == 2 else None
    return wire.DrainTarget(kind=kind.upper(), name=names[0], other=other, parallel=parallel)


def _wait_until_safe(operations: Operations, title: str, time_limit_s: float) -> None:
    """Print what a drain waits for whenever that changes, and that it is safe in the end."""
    end_s, told = monotonic() + time_limit_s, ""
    while True:
        drain = next((each for each in operations.list(LIST_DRAINS) if _title(each) == title), None)
        if drain is None:
            fail(f"{title}: somebody else has it used again")
        if drain.is_safe:
            cut_off = f"; cut off: {', '.join(drain.jobs)}" if drain.jobs else ""
            typer.echo(printable(f"safe to work on {title}{cut_off}"))
            return
        waits_for = "; ".join(drain.waits_for)
        if waits_for != told:
            typer.echo(printable(f"waiting for {waits_for}"))
            told = waits_for
        if monotonic() >= end_s:
            fail(f"not safe yet after {time_limit_s:g} s, still drained: {title}")
        sleep(_POLL_S)


def _title(drain: wire.DrainState) -> str:
    return f"{wire.DrainKind.Name(drain.kind).lower()} {drain.name}"
