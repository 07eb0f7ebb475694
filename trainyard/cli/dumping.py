"""``trainyard dump``."""

from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from controller.errors import StoreError
from trainyard.cli.exits import fail, refuse

if TYPE_CHECKING:
    from sqlalchemy import Connection

DatabaseOption = Annotated[
    str, typer.Option("--database", metavar="URL", help="The controller's database: a path, or an SQLAlchemy URL.")
]
FromOption = Annotated[int, typer.Option("--from", metavar="N", min=0, help="The first Plan, by its number.")]
ToOption = Annotated[int | None, typer.Option("--to", metavar="N", min=0, help="The last Plan.")]
FileOption = Annotated[
    Path | None, typer.Option("--output", metavar="FILE", dir_okay=False, help="Without it: standard output.")
]


def dump(
    database: DatabaseOption = "trainyard.db", first: FromOption = 0, last: ToOption = None, output: FileOption = None
) -> None:
    """Write the record of a controller's decisions as lines of JSON; the controller may be running."""
    from controller.store.database import Database
    from controller.store.facts import LAST_PLAN_NUMBER

    try:
        opened = Database.open(database, may_be_new=False)
    except StoreError as error:
        refuse((str(error),))
    asked = first, LAST_PLAN_NUMBER if last is None else last
    try:
        opened.read(lambda connection: _dump(opened.name, *asked, output, connection))
    except StoreError as error:
        fail(str(error))
    except BrokenPipeError:
        raise  # whoever reads has read enough
    except OSError as error:
        fail(f"{output or 'standard output'}: cannot be written: {error.strerror}")
    finally:
        opened.close()


def _dump(name: str, first: int, last: int, output: Path | None, connection: "Connection") -> None:
    from controller.record.lines import text_of
    from controller.store.facts import LAST_PLAN_NUMBER, plan_numbers, record_lines

    recorded = plan_numbers(0, LAST_PLAN_NUMBER, connection)
    if recorded is None and (first, last) != (0, LAST_PLAN_NUMBER):
        refuse((f"{name}: no plan is recorded",))
    if recorded is not None:
        oldest, newest = recorded
        if plan_numbers(first, last, connection) is None:
            asked = f"from {first} on" if last == LAST_PLAN_NUMBER else f"from {first} to {last}"
            before, after = plan_numbers(0, first - 1, connection), plan_numbers(last + 1, LAST_PLAN_NUMBER, connection)
            lacks = f" and lacks {before[1] + 1} to {after[0] - 1}" if before and after and first <= last else ""
            refuse((f"{name}: has no plans {asked}, its record goes from {oldest} to {newest}{lacks}",))
        if newest < last < LAST_PLAN_NUMBER:
            typer.echo(f"the record ends with plan {newest}", err=True)
    _write(text_of(record_lines(first, last, connection)), output)


def _write(lines: Iterable[str], output: Path | None) -> None:
    if output is None:
        for line in lines:
            typer.echo(line, nl=False)
    else:
        with output.open("w", encoding="utf-8") as file:
            file.writelines(lines)
