"""``trainyard dump``."""

from collections.abc import Iterable
from pathlib import Path
from typing import Annotated

import typer

from controller.cli.exits import fail, refuse
from controller.store.errors import StoreError

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
    from controller.record.lines import text_of
    from controller.store import dump as dumping
    from controller.store.database import Database

    try:
        opened = Database.open(database, may_be_new=False)
    except StoreError as error:
        refuse((str(error),))
    try:
        opened.read(
            lambda connection: _write(
                text_of(dumping.dump(first, dumping.LAST if last is None else last, connection)), output
            )
        )
    except StoreError as error:
        fail(str(error))
    except OSError as error:
        fail(f"{output}: cannot be written: {error.strerror}")
    finally:
        opened.close()


def _write(lines: Iterable[str], output: Path | None) -> None:
    if output is None:
        for line in lines:
            typer.echo(line, nl=False)
    else:
        with output.open("w", encoding="utf-8") as file:
            file.writelines(lines)
