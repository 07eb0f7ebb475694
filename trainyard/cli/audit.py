"""``trainyard audit``: the audit trail of a controller, which has its requests to switches and the calls to it."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated

import typer
from rich.table import Table
from rich.text import Text

from controller.errors import StoreError
from trainyard.cli.answers import Answer, OutputFormat, OutputOption, Writer
from trainyard.cli.exits import fail
from trainyard.cli.options import DatabaseOption
from trainyard.cli.output import date_and_time, number_table
from trainyard.cli.stored import opened_to_read

if TYPE_CHECKING:
    from controller.store.audit_entries import CallEntry, WriteEntry

LastOption = Annotated[int, typer.Option("--last", metavar="N", min=1, help="How many entries, the newest.")]


def audit(
    database: DatabaseOption = "trainyard.db", last: LastOption = 50, output: OutputOption = OutputFormat.TABLE
) -> None:
    """Show the newest entries of a controller's audit trail; the controller may be running."""
    # The store brings SQLAlchemy and gRPC, which --help and bad options do not wait for.
    from controller.store.audit_entries import CallEntry, WriteEntry, newest_entries

    opened = opened_to_read(database)
    try:
        entries = opened.read(lambda connection: newest_entries(last, connection))
    except StoreError as error:
        fail(str(error))
    finally:
        opened.close()
    writer = Writer(output)
    objects = [{"kind": entry.kind, **entry.model_dump(mode="json")} for entry in entries]
    columns = ("kind", *WriteEntry.model_fields, *CallEntry.model_fields)
    empty = f"the audit trail of {opened.name} is empty: no request to a switch and no call is recorded"
    writer.write(Answer({"entries": objects}, objects, lambda: _table(entries) if entries else Text(empty), columns))


def _table(entries: "Sequence[WriteEntry | CallEntry]") -> Table:
    from controller.store.audit_entries import WriteEntry

    columns = ("Time", "Who", "What", "Outcome", "Problem")
    table = number_table("Audit trail, newest last", *columns, left=columns[1:])
    for entry in entries:
        who, what = _write(entry) if isinstance(entry, WriteEntry) else _call(entry)
        table.add_row(*map(Text, (date_and_time(entry.time_s), who, what, entry.outcome, entry.problem)))
    return table


def _write(write: "WriteEntry") -> tuple[str, str]:
    changes = f"+{write.inserted:,} ~{write.modified:,} -{write.deleted:,}"
    who = f"Plan {write.plan}" if write.plan else "no Plan"
    return who, f"switch {write.switch}: {changes} entries"


def _call(call: "CallEntry") -> tuple[str, str]:
    identity = call.identity or "anyone"
    who = f"{identity} ({', '.join(filter(None, (call.role, call.tenant)))})" if call.role or call.tenant else identity
    return who, f"{call.method} {call.subject}".rstrip()
