"""``trainyard database``: back up, restore, verify and upgrade the database of a controller."""

import asyncio
from contextlib import closing
from pathlib import Path
from typing import Annotated

import typer

from controller.errors import StoreError
from topologies.printable import printable
from trainyard.cli.exits import EXIT_STATUS, fail, refuse, terminable
from trainyard.cli.lazy_group import command_group
from trainyard.cli.options import DatabaseOption
from trainyard.cli.stored import opened_to_read

# The store brings SQLAlchemy and gRPC, which --help and bad options do not wait for.

_MOST_CHARACTERS = 4096

BackupArgument = Annotated[Path, typer.Argument(metavar="FILE", help="The backup.")]
VerifiedArgument = Annotated[
    str, typer.Argument(metavar="URL|FILE", help="A database (a path, or an SQLAlchemy URL), or a backup.")
]

database = command_group("Back up, restore, verify and upgrade the database of a controller.")


@database.command(epilog=EXIT_STATUS)
def backup(
    file: BackupArgument,
    database: DatabaseOption = "trainyard.db",
    force: Annotated[bool, typer.Option("--force", help="Replace a file that is there.")] = False,
) -> None:
    """Write one consistent state of a database to a file; the controller may be running."""
    from controller.store.backup import UnfitBackupError, back_up

    opened = opened_to_read(database)
    try:
        with closing(opened), terminable():
            counts = back_up(opened, file, is_forced=force)
    except UnfitBackupError as error:
        refuse(str(error))
    except StoreError as error:
        fail(str(error))
    rows, jobs, plans = sum(counts.values()), counts["job"], counts["plan"]
    _say(f"backed up: {opened.name} to {file}: {rows:,} rows, with {jobs:,} jobs and {plans:,} Plans")


@database.command(epilog=EXIT_STATUS)
def restore(
    file: BackupArgument,
    database: Annotated[
        str,
        typer.Option("--database", metavar="URL", help="Database to make or to fill: a path, or an SQLAlchemy URL."),
    ],
    force: Annotated[bool, typer.Option("--force", help="Replace all that the database holds.")] = False,
) -> None:
    """Restore a backup to a database, on which no controller runs; all of it, or nothing."""
    from controller.store.backup import UnfitBackupError
    from controller.store.offline import InUseError
    from controller.store.restore import UnfitTargetError
    from controller.store.restore import restore as restore_backup

    try:
        with terminable():
            name = asyncio.run(restore_backup(file, database, is_forced=force))
    except (InUseError, UnfitBackupError, UnfitTargetError) as error:
        refuse(str(error))
    except StoreError as error:
        fail(str(error))
    _say(f"restored: {name} from {file}")


@database.command(epilog=EXIT_STATUS)
def verify(database: VerifiedArgument) -> None:
    """Read every row of a database or a backup as a controller does; print ok, or everything that is damaged."""
    from controller.store.database import DamagedDatabaseError, Database
    from controller.store.migration import Access
    from controller.store.verify import verify as verify_database

    problems = 0

    def show(problem: str) -> None:
        nonlocal problems
        problems += 1
        _say(problem)

    try:
        opened = Database.open(database, Access.READ)
    except DamagedDatabaseError as error:
        fail(str(error))
    except StoreError as error:
        refuse(str(error))
    try:
        with closing(opened), terminable():
            rows = verify_database(opened, show)
    except StoreError as error:
        fail(str(error))
    if problems:
        fail(f"{opened.name}: {problems:,} problem{'s' if problems > 1 else ''}")
    _say(f"ok: {opened.name}: {rows:,} rows")


@database.command(epilog=EXIT_STATUS)
def upgrade(database: DatabaseOption = "trainyard.db") -> None:
    """Bring the schema of a database up to date, as a controller that starts does."""
    from controller.store.database import Database
    from controller.store.migration import Access, stored_version

    try:
        with closing(Database.open(database, Access.READ)) as before:
            old = before.read(stored_version)
        with closing(Database.open(database, Access.WRITE)) as after:
            new = after.read(stored_version)
    except StoreError as error:
        refuse(str(error))
    if old == new:
        _say(f"nothing to do: the schema of {after.name} has version {new}")
    else:
        _say(f"upgraded: the schema of {after.name} from version {old} to {new}")


def _say(line: str) -> None:
    typer.echo(printable(line, _MOST_CHARACTERS))
