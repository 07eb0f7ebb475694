"""CSV rows by column name. Errors name line and column."""

import csv
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from topologies.files import FileError, read_lines
from topologies.printable import quoted


class TraceError(ValueError):
    """A trace that does not follow its format; the message names file, line and column."""


@dataclass(frozen=True, slots=True)
class CsvRow:
    """One row: the line on which it ends, and its values by column."""

    line: int
    values: Mapping[str, str]


def read_csv(path: Path, columns: Sequence[str]) -> Iterator[CsvRow]:
    """Read the rows of a file, the values of these columns only.

    Raises TraceError where the file cannot be read, a column is missing or repeated, a row is shorter or longer than it
    may be, a quotation does not end, or the last line has no line ending and so was cut off.
    """
    try:
        yield from _rows(path, _whole_lines(path, read_lines(path)), columns)
    except FileError as error:
        raise TraceError(str(error)) from error


def _whole_lines(path: Path, lines: Iterable[str]) -> Iterator[str]:
    for number, line in enumerate(lines, 1):
        if not line.endswith(("\n", "\r")):
            where = f"{path}: line {number}, column {line.count(',') + 1}"
            raise TraceError(f"{where}: expected the end of a line, the file is cut off here")
        yield line


def _rows(path: Path, lines: Iterable[str], columns: Sequence[str]) -> Iterator[CsvRow]:
    reader = csv.reader(lines, strict=True)
    try:
        header = [name.strip() for name in next(reader, [])]
        positions = {column: _position(path, header, column) for column in columns}
        last = max(positions.values())
        for fields in reader:
            if not fields:
                continue
            if len(fields) <= last:
                where = f"{path}: line {reader.line_num}, column {len(fields) + 1}"
                raise TraceError(f"{where}: {header[len(fields)]}: missing; the line ends here")
            for position, field in enumerate(fields[len(header) :], len(header) + 1):
                if field.strip():
                    where = f"{path}: line {reader.line_num}, column {position}"
                    raise TraceError(f"{where}: expected the end of the line, got {quoted(field)}")
            values = {column: fields[position].strip() for column, position in positions.items()}
            yield CsvRow(reader.line_num, values)
    except csv.Error as error:
        raise TraceError(f"{path}: line {reader.line_num}, column 1: not valid CSV: {error}") from error


def _position(path: Path, header: Sequence[str], column: str) -> int:
    if header.count(column) != 1:
        found = "there more than once" if column in header else "missing"
        raise TraceError(f"{path}: line 1, column {len(header) + 1}: {column}: {found}; expected one such column")
    return header.index(column)
