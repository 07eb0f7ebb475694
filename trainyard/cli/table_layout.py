"""How a table fits on a terminal: widths of columns in which every number stays whole, or a paragraph for each row."""

import re
from collections.abc import Iterable, Iterator, Sequence

from rich.cells import cell_len
from rich.console import RenderableType
from rich.text import Text

_NUMBER = re.compile(r"[+~\N{MINUS SIGN}-]?\d[\d.,]*\S{0,3}(?:\s\S{1,8}){0,2}")
"""A number with its unit, such as ``1.5 Gbit/s`` and ``12.0 s ago``."""
_LONGEST_UNBROKEN = 12
"""Characters of a word that stay in one line, if the terminal is not too narrow for the table."""


def cell_text(cell: RenderableType) -> str:
    """Return what a cell says."""
    if isinstance(cell, Text):
        return cell.plain
    return Text.from_markup(cell).plain if isinstance(cell, str) else ""


def fitted_widths(headings: Sequence[str], rows: Sequence[Sequence[str]], available: int) -> list[int] | None:
    """Return widths of columns that take no more than the characters ``available``; None where there are none.

    A column is at least as wide as every number in it and as every word of its heading. The widest columns give way
    first.
    """
    columns = [[row[position] for row in rows] for position in range(len(headings))]
    natural = [_longest([heading, *cells]) for heading, cells in zip(headings, columns, strict=True)]
    if sum(natural) <= available:
        return natural
    least = [_least_width(heading, cells) for heading, cells in zip(headings, columns, strict=True)]
    if sum(least) > available:
        return None

    def widths(most: int) -> list[int]:
        return [max(low, min(high, most)) for low, high in zip(least, natural, strict=True)]

    fitting, too_wide = 0, max(natural)  # the limit of every column is between these two
    while too_wide - fitting > 1:
        middle = (fitting + too_wide) // 2
        fitting, too_wide = (middle, too_wide) if sum(widths(middle)) <= available else (fitting, middle)
    found = widths(fitting)
    for position, high in enumerate(natural):
        if found[position] == fitting < high and sum(found) < available:
            found[position] += 1
    return found


def row_lines(headings: Sequence[str], rows: Iterable[Sequence[str]]) -> Iterator[Text]:
    """Yield every row as a paragraph, with a line for each column: its heading, and what the cell says."""
    for row in rows:
        yield Text()
        for heading, cell in zip(headings, row, strict=True):
            line = Text(f"{heading}: ", style="bold", overflow="fold")
            yield line.append(cell, style="not bold")
    yield Text()


def _longest(lines: Iterable[str]) -> int:
    return max((cell_len(line) for cell in lines for line in cell.split("\n")), default=0)


def _least_width(heading: str, cells: Iterable[str]) -> int:
    """Return the width of a column in which no number, no word of its heading and no short word is broken."""
    words: set[str] = set(heading.split())
    for cell in set(cells):
        if _NUMBER.fullmatch(cell):
            words.add(cell)
        else:
            words |= {word if _NUMBER.fullmatch(word) else word[:_LONGEST_UNBROKEN] for word in cell.split()}
    return _longest(words)
