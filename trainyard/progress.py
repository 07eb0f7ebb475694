"""Progress: a bar on terminals and in notebooks, and elsewhere a line on stderr now and then."""

import math
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from threading import Event, Thread
from time import monotonic

from rich.console import Console
from rich.markup import escape
from rich.progress import BarColumn, MofNCompleteColumn, Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

from topologies.printable import printable

OnProgress = Callable[[float, float], None]
"""Called with the time reached and the time expected at the end, both in (virtual) seconds; the end may be infinite."""

LINE_EVERY_S = 30.0
"""How often a line is written where there is no terminal; what takes less time has none."""


@contextmanager
def counted(what: str, total: int, *, show: bool = True) -> Iterator[Callable[[], None]]:
    """Show how many of ``total`` are done; call what is yielded for each of them."""
    console = Console(stderr=True)
    done = 0

    def advance() -> None:
        nonlocal done
        done += 1
        bars.advance(task)

    columns = (SpinnerColumn(), _text(what), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    with (
        Progress(*columns, console=console, transient=True, disable=not (show and _can_show(console))) as bars,
        _lines(lambda: f"{done:,} of {total:,} {what}", is_wanted=show and not _can_show(console)),
    ):
        task = bars.add_task("", total=total)
        yield advance


@contextmanager
def progress(what: str) -> Iterator[OnProgress]:
    """Show how far something is; call what is yielded with the time reached and the expected end."""
    console = Console(stderr=True)
    columns = (
        SpinnerColumn(),
        _text(what),
        BarColumn(),
        TextColumn("{task.fields[reached]}"),
        TimeElapsedColumn(),
    )
    reached = "starting"

    def on_progress(now_s: float, end_s: float) -> None:
        nonlocal reached
        total = end_s if math.isfinite(end_s) else None
        reached = f"{now_s:.1f} s" if total is None else f"{now_s:.1f} of {total:.1f} s"
        bars.update(task, completed=now_s, total=total, reached=reached)

    with (
        Progress(*columns, console=console, transient=True, disable=not _can_show(console)) as bars,
        _lines(lambda: f"{what}: {reached}", is_wanted=not _can_show(console)),
    ):
        task = bars.add_task("", total=None, reached=reached)
        yield on_progress


@contextmanager
def _lines(reached: Callable[[], str], *, is_wanted: bool) -> Iterator[None]:
    """Write on stderr every ``LINE_EVERY_S`` what is reached, and for how long that has taken."""
    if not is_wanted:
        yield
        return
    is_over, began_s = Event(), monotonic()

    def write() -> None:
        while not is_over.wait(LINE_EVERY_S):
            print(f"{printable(reached())}, after {monotonic() - began_s:.0f} s", file=sys.stderr, flush=True)

    thread = Thread(target=write, name="progress", daemon=True)
    thread.start()
    try:
        yield
    finally:
        is_over.set()
        thread.join()


def _text(what: str) -> TextColumn:
    return TextColumn(escape(printable(what)))


def _can_show(console: Console) -> bool:
    return console.is_terminal or console.is_jupyter
