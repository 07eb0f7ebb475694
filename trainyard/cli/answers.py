"""What a command answers, and the formats in which it prints it: a table for people, JSON, YAML or CSV for programs.

A command that shows something takes ``output: OutputOption = OutputFormat.TABLE`` and hands its answer to a writer::

    def pins(output: OutputOption = OutputFormat.TABLE) -> None:
        pinned = [{"job": "gpt", "level": 7}]
        Writer(output).write(Answer({"pins": pinned}, pinned, lambda: table_of(pinned)))

Keys are names of fields with their units, and numbers are not rounded. ``--json`` is short for ``-o json``.
"""

import csv
import io
import json
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from enum import StrEnum
from pathlib import PurePath
from typing import Annotated, Any

import typer
from rich.console import RenderableType

from topologies.printable import printable
from trainyard.cli.output import PrintableConsole

_MOST_CHARACTERS = 1_000_000
"""Of a cell of CSV."""


class OutputFormat(StrEnum):
    """How a command prints its answer."""

    TABLE = "table"
    JSON = "json"
    YAML = "yaml"
    CSV = "csv"


OutputOption = Annotated[
    OutputFormat,
    typer.Option("--output", "-o", metavar="table|json|yaml|csv", help="How to print it; --json is short for -o json."),
]


@dataclass(frozen=True, slots=True)
class Answer:
    """What a command has to say.

    Attributes:
        document: For JSON and YAML. A list stands under a key of the document, never alone.
        rows: For CSV, a mapping each. A command whose answer is no list refuses CSV before.
        table: Makes what people get; None where the command prints one table for several answers.
        columns: The first columns of CSV, also where there are no rows. Those of the rows follow.
    """

    document: Mapping[str, Any]
    rows: Iterable[Mapping[str, Any]]
    table: Callable[[], RenderableType] | None = None
    columns: Sequence[str] = ()


class Writer:
    """Prints answers one after the other: a document a line in JSON, documents in YAML, one header in CSV."""

    def __init__(self, output: OutputFormat) -> None:
        self.output = output
        self._columns: tuple[str, ...] = ()
        self._num_written = 0

    @property
    def is_for_people(self) -> bool:
        """Whether tables are asked for."""
        return self.output is OutputFormat.TABLE

    def write(self, answer: Answer) -> None:
        """Print an answer at once, also where a reader waits at the other end of a pipe."""
        match self.output:
            case OutputFormat.TABLE:
                if answer.table is not None:
                    PrintableConsole().print(answer.table())
            case OutputFormat.JSON:
                print(json.dumps(_plain(answer.document)), flush=True)
            case OutputFormat.YAML:
                print(self._yaml(answer.document), end="", flush=True)
            case OutputFormat.CSV:
                print(self._csv(answer), end="", flush=True)
        self._num_written += 1

    def begin_block(self) -> None:
        """Part what follows from what was written before, if a reader could not tell them apart."""
        if self.is_for_people:
            print(f"--- {datetime.now(UTC).isoformat(sep=' ', timespec='seconds')}", flush=True)
        elif self.output is OutputFormat.CSV:
            print(flush=True)

    def _yaml(self, document: Mapping[str, Any]) -> str:
        import yaml  # takes a while, and other formats do not need it

        text: str = yaml.safe_dump(_plain(document), sort_keys=False, width=math.inf)
        return f"---\n{text}" if self._num_written else text

    def _csv(self, answer: Answer) -> str:
        rows = [dict(_flat(row)) for row in answer.rows]
        text = io.StringIO()
        writer = csv.writer(text, lineterminator="\n")
        columns = tuple(dict.fromkeys((*answer.columns, *(key for row in rows for key in row))))
        if columns != self._columns:
            if self._columns:
                text.write("\n")  # a table of its own
            writer.writerow(columns)
            self._columns = columns
        writer.writerows([_cell(row.get(column)) for column in columns] for row in rows)
        return text.getvalue()


def _plain(value: Any) -> Any:
    """Return a value as JSON has it. A number that is not finite is null, which JSON has no word for."""
    if isinstance(value, Mapping):
        return {str(key): _plain(each) for key, each in value.items()}
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, StrEnum | PurePath):
        return str(value)
    if value is None or isinstance(value, str | int):
        return value
    return [_plain(each) for each in value]


def _flat(row: Mapping[str, Any], prefix: str = "") -> Iterable[tuple[str, Any]]:
    """Yield the fields of a row; those of a mapping in it are named ``outer.inner``."""
    for key, value in row.items():
        if isinstance(value, Mapping):
            yield from _flat(value, f"{prefix}{key}.")
        else:
            yield f"{prefix}{key}", value


def _cell(value: Any) -> str | int | float:
    """Return a value for a cell of CSV: lists of words with spaces between them, other lists as JSON."""
    plain = _plain(value)
    match plain:
        case None:
            return ""
        case bool():
            return "true" if plain else "false"
        case list() if not all(isinstance(each, str | int | float) for each in plain):
            return json.dumps(plain)
        case list():
            return printable(" ".join(map(str, plain)), _MOST_CHARACTERS)
        case str():
            return printable(plain, _MOST_CHARACTERS)
    number: int | float = plain
    return number
