"""Tables that commands print."""

import os
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from typing import IO, Any

from rich import box
from rich.console import Console, ConsoleOptions, RenderableType, RenderResult
from rich.markup import escape
from rich.segment import Segment
from rich.style import StyleType
from rich.table import Table
from rich.text import Text

from topologies.printable import printable
from trainyard.cli.table_layout import cell_text, fitted_widths, row_lines

_UNLIMITED = 1_000_000
"""Columns, where no terminal limits them."""
_LAYOUT = "\n\N{NO-BREAK SPACE}"


class PrintableConsole(Console):
    """A console that escapes what is not printable in what it shows, so that no name controls the terminal.

    What goes to a file or a pipe is as wide as it needs to be, unless ``COLUMNS`` is set. Nothing is cut off.
    """

    def __init__(self, *, file: IO[str] | None = None, width: int | None = None, stderr: bool = False) -> None:
        super().__init__(file=file, width=width, stderr=stderr)
        # Rich takes a pipe for a terminal where FORCE_COLOR is set.
        if width is None and not self.file.isatty() and not os.environ.get("COLUMNS"):
            self.width = _UNLIMITED

    def print(self, *objects: Any, crop: bool = False, **options: Any) -> None:
        """Print as a console does. A number that is longer than a line goes on in the next one."""
        super().print(*objects, crop=crop, **options)

    def render(self, renderable: RenderableType, options: ConsoleOptions | None = None) -> Iterable[Segment]:
        """Render as a console does, with text escaped."""
        for segment in super().render(renderable, options):
            yield segment if segment.control else Segment(_shown(segment.text), segment.style)


class PrintableTable(Table):
    """A table that escapes what is not printable in its cells, before it measures them, and reads no markup in them.

    Where it is too wide, words go on in the next line, and numbers stay whole. Where that is not enough, every row
    becomes a paragraph, with a line for each column.
    """

    def add_row(self, *cells: RenderableType | None, style: StyleType | None = None, end_section: bool = False) -> None:
        """Add a row of cells."""
        super().add_row(*map(_shown_cell, cells), style=style, end_section=end_section)

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        """Render the title in lines of its own, then the rows."""
        title, self.title = self.title, None
        try:
            if title:
                yield Text(cell_text(title), style=self.title_style or "")
            headings = [cell_text(column.header) for column in self.columns]
            rows = list(zip(*([cell_text(cell) for cell in column.cells] for column in self.columns), strict=True))
            widths = fitted_widths(headings, rows, options.max_width - self._overhead(console, options))
            if widths is None:
                yield from row_lines(headings, rows)
            else:
                for column, width in zip(self.columns, widths, strict=True):
                    column.width = width
                yield from super().__rich_console__(console, options.update(max_width=_UNLIMITED))
        finally:
            self.title = title

    def _overhead(self, console: Console, options: ConsoleOptions) -> int:
        """Return how many characters of a line are no cells."""
        for column in self.columns:
            column.width = 1
        return self.__rich_measure__(console, options.update(max_width=_UNLIMITED)).maximum - len(self.columns)


def _shown_cell(cell: RenderableType | None) -> RenderableType | None:
    if isinstance(cell, Text):
        return cell if cell.plain.isprintable() else Text(_shown(cell.plain), cell.style)
    return escape(_shown(cell)) if isinstance(cell, str) else cell


def _shown(text: str) -> str:
    if text.isprintable():
        return text
    return "".join(each if each in _LAYOUT else printable(each) for each in text)


def number_table(title: str, *columns: str, left: Sequence[str] = ()) -> Table:
    """Return an empty table of numbers: columns are flush right but for the first one and those named ``left``."""
    table = PrintableTable(
        title=Text(_shown(title)),
        title_style="bold",
        box=box.SIMPLE_HEAD,
        collapse_padding=True,
        pad_edge=False,
    )
    for position, column in enumerate(columns):
        table.add_column(
            Text(_shown(column)),
            justify="right" if position and column not in left else "left",
            overflow="fold",
        )
    return table


def date_and_time(time_s: float) -> str:
    """A time in seconds since 1970 as date and time in UTC; one that has no date as seconds."""
    try:
        return datetime.fromtimestamp(time_s, UTC).isoformat(sep=" ", timespec="milliseconds")
    except (ValueError, OverflowError, OSError):
        return f"{time_s:g} s"
