"""``trainyard audit``: the audit trail of a controller, which has its requests to switches and the calls to it."""

import json
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Annotated

import typer
from rich.text import Text

from controller.errors import StoreError
from trainyard.cli.exits import fail, refuse
from trainyard.cli.output import PrintableConsole, number_table

if TYPE_CHECKING:
    from controller.store.audit_entries import CallEntry, WriteEntry

DatabaseOption = Annotated[
    str, typer.Option("--database", metavar="URL", help="Database of the controller: a path, or an SQLAlchemy URL.")
]
LastOption = Annotated[int, typer.Option("--last", metavar="N", min=1, help="How many entries, the newest.")]
JsonOption = Annotated[bool, typer.Option("--json", help="Print one JSON object a line for each entry.")]


def audit(database: DatabaseOption = "trainyard.db", last: LastOption = 50, as_json: JsonOption = False) -> None:
    """Show the newest entries of a controller's audit trail; the controller may be running."""
    # The store brings SQLAlchemy and gRPC, which --help and bad options do not wait for.
    from controller.store.audit_entries import newest_entries
    from controller.store.database import Database
    from controller.store.migration import Access

    try:
        opened = Database.open(database, Access.READ)
    except StoreError as error:
        refuse(str(error))
    try:
        entries = opened.read(lambda connection: newest_entries(last, connection))
    except StoreError as error:
        fail(str(error))
    finally:
        opened.close()
    if as_json:
        for entry in entries:
            print(json.dumps({"kind": entry.kind, **entry.model_dump(mode="json")}))
    else:
        _show(entries)


def _show(entries: "Sequence[WriteEntry | CallEntry]") -> None:
    from controller.store.audit_entries import WriteEntry

    columns = ("Time", "Who", "What", "Outcome", "Problem")
    table = number_table("Audit trail, newest last", *columns, left=columns[1:])
    for entry in entries:
        who, what = _write(entry) if isinstance(entry, WriteEntry) else _call(entry)
        table.add_row(*map(Text, (_time(entry.time_s), who, what, entry.outcome, entry.problem)))
    PrintableConsole().print(table)


def _write(write: "WriteEntry") -> tuple[str, str]:
    changes = f"+{write.inserted:,} ~{write.modified:,} -{write.deleted:,}"
    return f"Plan {write.plan}", f"switch {write.switch}: {changes} entries"


def _call(call: "CallEntry") -> tuple[str, str]:
    identity = call.identity or "anyone"
    who = f"{identity} ({', '.join(filter(None, (call.role, call.tenant)))})" if call.role or call.tenant else identity
    return who, f"{call.method} {call.subject}".rstrip()


def _time(time_s: float) -> str:
    try:
        return datetime.fromtimestamp(time_s, UTC).isoformat(sep=" ", timespec="milliseconds")
    except (ValueError, OverflowError, OSError):
        return f"{time_s:g} s"
