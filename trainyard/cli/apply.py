"""``trainyard apply``: plan once for the switches of a controller that does not run, or say what would be written."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.table import Table
from rich.text import Text

from topologies.printable import printable
from topologies.quantities import count
from trainyard.cli.answers import Answer, OutputFormat, OutputOption, Writer
from trainyard.cli.controller import ConfigOption
from trainyard.cli.offline import fail_for_problems, visit_switches
from trainyard.cli.output import number_table

if TYPE_CHECKING:
    # finsy is slow to import, which --help and bad configurations do not wait for.
    from controller.southbound.visit import Visit

_COLUMNS = ("switch", "change", "kind", "entry")
_MOST_CHARACTERS = 1_000
_OF_JOBS = ("flow", "job")
"""Kinds of entries that a job brings about; the others are base routing and what is for a whole switch."""
_CHANGES = {"INSERT": "inserted", "MODIFY": "modified", "DELETE": "deleted"}

DryRunOption = Annotated[
    bool, typer.Option("--dry-run", help="Write nothing, and change no database; a controller may be running.")
]
AllOption = Annotated[
    bool, typer.Option("--all", help="Print a line for every entry; without it, only for those of flows and jobs.")
]


def apply(
    config: ConfigOption,
    dry_run: DryRunOption = False,
    every_entry: AllOption = False,
    output: OutputOption = OutputFormat.TABLE,
) -> None:
    """Plan once and write it to the switches of a controller that does not run; --dry-run only says what."""
    from controller.process.one_shot import apply_once

    visits = visit_switches(config, partial(apply_once, is_dry_run=dry_run))
    documents = [_document(visit) for visit in visits]
    rows = [{"switch": each["name"], **entry} for each in documents for entry in each["entries"]]
    document = {"is_dry_run": dry_run, "switches": documents}
    writer = Writer(output)
    writer.write(Answer(document, rows, partial(_table, documents, is_dry_run=dry_run), _COLUMNS))
    for line in _lines(rows, is_dry_run=dry_run, every_entry=every_entry) if writer.is_for_people else ():
        typer.echo(printable(line, _MOST_CHARACTERS))
    fail_for_problems(visits)


def _document(visit: "Visit") -> dict[str, Any]:
    from controller.southbound.entry_words import entry_words, kind_words

    return {
        "name": visit.name,
        "address": visit.address,
        "problem": visit.problem,
        "is_held": visit.is_held,
        "loads_program": visit.loads_program,
        "entries": [
            {
                "change": _CHANGES[each.kind.name],
                "kind": kind_words(each.entity),
                "entry": entry_words(each.entity),
            }
            for each in visit.updates
        ],
    }


def _lines(rows: Sequence[Mapping[str, Any]], *, is_dry_run: bool, every_entry: bool) -> Iterator[str]:
    """Yield how many entries of a kind are written to how many switches, then those of flows and jobs, then totals."""
    counted = [] if every_entry else [row for row in rows if row["kind"] not in _OF_JOBS]
    for change in _CHANGES.values():
        changed = [row for row in counted if row["change"] == change]
        for kind, number in sorted(Counter(row["kind"] for row in changed).items()):
            switches = {row["switch"] for row in changed if row["kind"] == kind}
            yield f"{_number(len(switches), 'switch', 'switches')}: {change} {number:,} {kind}"
    for row in rows:
        if every_entry or row["kind"] in _OF_JOBS:
            yield f"{row['switch']}: {row['change']} {row['kind']} {row['entry']}"
    totals = Counter(row["kind"] if row["kind"] in _OF_JOBS else "other" for row in rows)
    kinds = f" (flow: {totals['flow']:,}, job: {totals['job']:,}, other: {totals['other']:,})" if rows else ""
    done = "would be written" if is_dry_run else "written"
    more = "; --all lists every entry" if counted else ""
    yield f"{_number(len(rows), 'entry', 'entries')} {done}{kinds}{more}"


def _number(number: int, one: str, several: str) -> str:
    return f"{number:,} {one if number == 1 else several}"


def _table(documents: Sequence[Mapping[str, Any]], *, is_dry_run: bool) -> Table:
    """Return a row for every switch."""
    title = f"{_number(len(documents), 'switch', 'switches')}: what {'would be' if is_dry_run else 'was'} written"
    table = number_table(
        title, "Switch", "Program", "Inserted", "Modified", "Deleted", "Problem", left=("Program", "Problem")
    )
    for each in documents:
        changes = Counter(entry["change"] for entry in each["entries"])
        table.add_row(
            Text(each["name"]),
            "loaded" if each["loads_program"] else count(None) if each["problem"] else "stays",
            *(count(changes[change]) for change in _CHANGES.values()),
            Text(each["problem"]),
        )
    return table
