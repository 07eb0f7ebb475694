"""How commands lay out what they print for people."""

from collections.abc import Sequence

from rich import box
from rich.table import Table
from rich.text import Text


def number_table(title: str, *columns: str, left: Sequence[str] = ()) -> Table:
    """A table of numbers: flush right are all columns but the first and those named ``left``.

    Where the terminal is narrow, cells go on in a further line: as long as the headings have room, nothing is cut.
    """
    table = Table(
        title=Text(title),
        title_justify="left",
        title_style="bold",
        box=box.SIMPLE_HEAD,
        collapse_padding=True,
        pad_edge=False,
    )
    for position, column in enumerate(columns):
        table.add_column(
            Text(column),
            justify="right" if position and column not in left else "left",
            overflow="fold",
            min_width=max(map(len, column.split())),
        )
    return table


def way(nodes: Sequence[str], links: Sequence[int]) -> str:
    """A path in a word; ``t0.1`` is left by the second of its parallel links to the next."""
    return ">".join((*(f"{node}.{link}" for node, link in zip(nodes, links, strict=False)), nodes[-1]))
