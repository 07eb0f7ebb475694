"""Progress bars on terminals and in notebooks; nothing is shown where stderr is neither."""

import math
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from rich.console import Console
from rich.markup import escape
from rich.progress import BarColumn, MofNCompleteColumn, Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

from topologies.printable import printable

OnProgress = Callable[[float, float], None]
"""Called with the time reached and the time expected at the end, both in (virtual) seconds; the end may be infinite."""


@contextmanager
def counted(what: str, total: int, *, show: bool = True) -> Iterator[Callable[[], None]]:
    """Show how many of ``total`` are done; call what is yielded for each of them."""
    console = Console(stderr=True)
    columns = (SpinnerColumn(), _text(what), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    with Progress(*columns, console=console, transient=True, disable=not (show and _can_show(console))) as bars:
        task = bars.add_task("", total=total)
        yield lambda: bars.advance(task)


@contextmanager
def progress(what: str) -> Iterator[OnProgress]:
    """Show a bar that goes away at the end; call what is yielded with the time reached and the expected end."""
    console = Console(stderr=True)
    columns = (
        SpinnerColumn(),
        _text(what),
        BarColumn(),
        TextColumn("{task.fields[reached]}"),
        TimeElapsedColumn(),
    )
    with Progress(*columns, console=console, transient=True, disable=not _can_show(console)) as bars:
        task = bars.add_task("", total=None, reached="starting")

        def on_progress(now_s: float, end_s: float) -> None:
            if math.isfinite(end_s):
                bars.update(task, completed=now_s, total=end_s, reached=f"{now_s:.1f} of {end_s:.1f} s")
            else:
                bars.update(task, completed=now_s, reached=f"{now_s:.1f} s")

        yield on_progress


def _text(what: str) -> TextColumn:
    return TextColumn(escape(printable(what)))


def _can_show(console: Console) -> bool:
    return console.is_terminal or console.is_jupyter
