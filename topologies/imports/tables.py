"""Reads tables in CSV: a header, and below it a row for each thing, every problem with its line."""

import csv
import io
from collections.abc import Iterator, Mapping, Set
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from topologies.files import FileError, read_text, shown_path
from topologies.printable import printable, quoted

_DELIMITERS = ",;\t"


@dataclass(frozen=True, slots=True)
class Columns:
    """The columns of a kind of table: those that must be there, those that may be, and those that say nothing here."""

    required: Set[str]
    optional: Set[str]
    ignored: Set[str]


@dataclass(frozen=True, slots=True)
class Row:
    """A row: the file and line that it is at, and its cells that are not empty, by column."""

    place: str
    cells: Mapping[str, str]


def read_table(path: Path, columns: Columns, problems: list[str]) -> list[Row]:
    """Return the rows of a table, and add what is wrong with it to ``problems``.

    Cells are separated by commas, or else by semicolons or tabs. Columns that nobody knows are refused by name.
    """
    try:
        text = read_text(path).removeprefix("\ufeff")
    except FileError as error:
        problems.append(str(error))
        return []
    header, _, _ = text.partition("\n")
    delimiter = next((each for each in _DELIMITERS if each in header), ",")
    lines = csv.reader(io.StringIO(text, newline=""), delimiter=delimiter, strict=True)
    try:
        names = [name.strip().lower() for name in next(lines, [])]
        faults = list(_faults_of_header(names, columns))
        if faults:
            problems += [f"{shown_path(path)}: line 1: {fault}" for fault in faults]
            return []
        return [row for row in _rows(path, lines, names, problems) if row.cells]
    except csv.Error as error:
        problems.append(f"{shown_path(path)}: line {lines.line_num}: not CSV: {printable(str(error))}")
        return []


def _rows(path: Path, lines: Any, names: list[str], problems: list[str]) -> Iterator[Row]:
    number = 2
    for cells in lines:
        place, number = f"{shown_path(path)}: line {number}", lines.line_num + 1
        if cells and len(cells) != len(names):
            problems.append(f"{place}: expected {len(names)} cells as in the header, got {len(cells)}")
            continue
        stripped = zip(names, map(str.strip, cells), strict=False)
        yield Row(place, {name: cell for name, cell in stripped if cell})


def _faults_of_header(names: list[str], columns: Columns) -> Iterator[str]:
    known = columns.required | columns.optional
    for name in sorted(columns.required - set(names)):
        yield f"expected a column {name}"
    for position, name in enumerate(names):
        if name not in known | columns.ignored:
            yield f"unknown column {quoted(name)}; expected one of {', '.join(sorted(known))}"
        elif name in names[:position]:
            yield f"expected the column {name} once"
