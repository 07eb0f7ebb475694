"""Restores backups to databases on which no controller runs: all of one is there, or nothing was changed."""

from collections.abc import Sequence
from contextlib import closing
from functools import partial
from pathlib import Path

from sqlalchemy import Connection, delete, func, select, text

from controller.errors import StoreError
from controller.store.addresses import url_of
from controller.store.backup import UnfitBackupError
from controller.store.copies import copy_rows, up_to_date
from controller.store.database import Database
from controller.store.engine import begin_alone, lift_limits, path_of
from controller.store.grace import begin_grace
from controller.store.leader_lease import continue_terms, require_term
from controller.store.migration import Access, create_tables, stored_version
from controller.store.offline import take_term
from controller.store.schema import METADATA
from controller.store.seal import is_sealed
from controller.store.verify import check_file, check_rows

_HOLDER = "trainyard database restore"
_MOST_NAMED = 10


class UnfitTargetError(StoreError):
    """The database cannot be opened, or has something already; nothing was changed."""


async def restore(file: Path, address: str, *, is_forced: bool) -> str:
    """Restore a backup to a new database, or, where that ``is_forced``, to one that has something; returns its name.

    The terms of controllers go on, and the next one keeps the rules that it finds on switches for one lease.

    Raises:
        UnfitBackupError: The file is no sound backup.
        UnfitTargetError: The database has something, or cannot be opened.
        InUseError: A controller runs on the database.
        StoreError: The database cannot be written, or a controller leads on it.
    """
    with closing(_opened(str(file), Access.READ, UnfitBackupError)) as backup:
        if not backup.read(is_sealed):
            raise UnfitBackupError(f"{file}: is a database, not a backup: `trainyard database backup` makes one of it")
        problems: list[str] = []
        backup.read(partial(check_file, problems.append))
        _require_none(problems, file)
        with up_to_date(backup) as source:
            source.read(partial(check_rows, problems.append))
            _require_none(problems, file)
            return await _restore(source, address, is_forced=is_forced)


def _opened(address: str, access: Access, kind: type[StoreError]) -> Database:
    try:
        return Database.open(address, access)
    except StoreError as error:
        raise kind(str(error)) from error


def _require_none(problems: Sequence[str], file: Path) -> None:
    if problems:
        more = f"; and {len(problems) - _MOST_NAMED:,} more problems" if len(problems) > _MOST_NAMED else ""
        raise UnfitBackupError(f"{file}: is damaged: {'; '.join(problems[:_MOST_NAMED])}{more}")


async def _restore(source: Database, address: str, *, is_forced: bool) -> str:
    path = path_of(url_of(address))
    is_new = path is not None and not path.exists()
    with closing(_opened(address, Access.RESTORE, UnfitTargetError)) as target:
        if target.read(stored_version) is None:
            try:
                target.write_now(partial(_fill, source))
            except BaseException:  # a signal, too
                target.close()
                if path is not None and is_new:
                    path.unlink(missing_ok=True)
                raise
            return target.name
        if not is_forced:
            raise UnfitTargetError(f"{target.name}: holds a database of Trainyard; --force replaces all that it holds")
    with closing(_opened(address, Access.WRITE, UnfitTargetError)) as target:
        term = await take_term(target, _HOLDER)
        target.guarded(partial(require_term, term)).write_now(partial(_replace, source, term))
        return target.name


def _fill(source: Database, connection: Connection) -> None:
    begin_alone(connection)
    if stored_version(connection) is not None:
        raise StoreError("another process has just made a database there")
    create_tables(connection)
    _replace(source, 0, connection)


def _replace(source: Database, term: int, connection: Connection) -> None:
    lift_limits(connection)
    for table in reversed(METADATA.sorted_tables):
        connection.execute(delete(table))
    source.read(lambda rows: copy_rows(METADATA.sorted_tables, rows, connection))
    if connection.dialect.name == "postgresql":
        _continue_numbers(connection)
    continue_terms(term, connection)
    begin_grace(connection)


def _continue_numbers(connection: Connection) -> None:
    """Have the columns that PostgreSQL numbers go on after what was restored."""
    for table in METADATA.sorted_tables:
        if (column := table.autoincrement_column) is not None:
            last = connection.scalar(select(func.max(column)))
            if last is not None:
                sequence = {"table": table.name, "column": column.name, "last": last}
                connection.execute(text("SELECT setval(pg_get_serial_sequence(:table, :column), :last)"), sequence)
